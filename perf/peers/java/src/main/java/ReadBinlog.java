import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.TransactionPayloadEventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.StringJoiner;

/**
 * Reads a binlog several times with mysql-binlog-connector-java, as it comes, and counts rows.
 *
 * Arguments: PASSES file PATH, or PASSES server HOST PORT USER BINLOG. Prints a JSON object: the rows of one
 * pass, and the seconds of each.
 */
public final class ReadBinlog {
    private static final int FILE_BUFFER_BYTES = 1 << 20;
    private static final int SERVER_ID = 4_000_003;

    private long rows;

    public static void main(String[] arguments) throws IOException {
        int passes = Integer.parseInt(arguments[0]);
        StringJoiner seconds = new StringJoiner(", ");
        long rows = 0;
        for (int pass = 0; pass < passes; pass++) {
            ReadBinlog reading = new ReadBinlog();
            long begun = System.nanoTime();
            if (arguments[1].equals("file")) {
                reading.file(arguments[2]);
            } else {
                reading.server(arguments[2], Integer.parseInt(arguments[3]), arguments[4], arguments[5]);
            }
            seconds.add(Double.toString((System.nanoTime() - begun) / 1e9));
            rows = reading.rows;
        }
        System.out.println("{\"rows\": " + rows + ", \"seconds\": [" + seconds + "]}");
    }

    private void file(String path) throws IOException {
        InputStream input = new BufferedInputStream(new FileInputStream(path), FILE_BUFFER_BYTES);
        try (BinaryLogFileReader reader = new BinaryLogFileReader(input)) {
            for (Event event; (event = reader.readEvent()) != null; ) {
                count(event);
            }
        }
    }

    private void server(String host, int port, String user, String binlog) throws IOException {
        BinaryLogClient client = new BinaryLogClient(host, port, user, "");
        client.setServerId(SERVER_ID);
        client.setBlocking(false);
        client.setKeepAlive(false);
        client.setBinlogFilename(binlog);
        client.setBinlogPosition(4);
        client.registerEventListener(this::count);
        client.connect();
    }

    private void count(Event event) {
        EventData data = event.getData();
        if (data instanceof WriteRowsEventData) {
            rows += ((WriteRowsEventData) data).getRows().size();
        } else if (data instanceof UpdateRowsEventData) {
            rows += ((UpdateRowsEventData) data).getRows().size();
        } else if (data instanceof DeleteRowsEventData) {
            rows += ((DeleteRowsEventData) data).getRows().size();
        } else if (data instanceof TransactionPayloadEventData) {
            ((TransactionPayloadEventData) data).getUncompressedEvents().forEach(this::count);
        }
    }
}
