// Reads a binlog several times with go-mysql, as it comes, and counts rows.
//
// Arguments: WARM_UP_SECONDS PASSES, then file PATH, or server HOST PORT USER BINLOG ROWS. Prints a JSON object:
// the rows of one pass, the number of all passes, and the seconds of each after the warm-up.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

const (
	serverID     = 4_000_004
	warmUpPasses = 2
)

func main() {
	warmUp, passes := time.Duration(number(os.Args[1]))*time.Second, number(os.Args[2])
	arguments := os.Args[3:]
	told := struct {
		Rows    int       `json:"rows"`
		Passes  int       `json:"passes"`
		Seconds []float64 `json:"seconds"`
	}{}
	started := time.Now()
	for len(told.Seconds) < passes {
		warm := told.Passes >= warmUpPasses && time.Since(started) >= warmUp
		begun := time.Now()
		if arguments[0] == "file" {
			told.Rows = readFile(arguments[1])
		} else {
			told.Rows = readServer(arguments[1], number(arguments[2]), arguments[3], arguments[4], number(arguments[5]))
		}
		told.Passes++
		if warm {
			told.Seconds = append(told.Seconds, time.Since(begun).Seconds())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		log.Fatal(err)
	}
}

func readFile(path string) int {
	rows := 0
	err := replication.NewBinlogParser().ParseFile(path, 4, func(event *replication.BinlogEvent) error {
		rows += rowsOf(event)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	return rows
}

// The stream of go-mysql does not end where the server has no more, so it is read until all rows are there.
func readServer(host string, port int, user string, binlog string, wanted int) int {
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: serverID,
		Flavor:   mysql.MySQLFlavor,
		Host:     host,
		Port:     uint16(port),
		User:     user,
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	defer syncer.Close()
	streamer, err := syncer.StartSync(mysql.Position{Name: binlog, Pos: 4})
	if err != nil {
		log.Fatal(err)
	}
	rows := 0
	for rows < wanted {
		event, err := streamer.GetEvent(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		rows += rowsOf(event)
	}
	return rows
}

func rowsOf(event *replication.BinlogEvent) int {
	switch body := event.Event.(type) {
	case *replication.RowsEvent:
		switch event.Header.EventType {
		case replication.UPDATE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2,
			replication.PARTIAL_UPDATE_ROWS_EVENT:
			return len(body.Rows) / 2
		}
		return len(body.Rows)
	case *replication.TransactionPayloadEvent:
		rows := 0
		for _, inner := range body.Events {
			rows += rowsOf(inner)
		}
		return rows
	}
	return 0
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}
