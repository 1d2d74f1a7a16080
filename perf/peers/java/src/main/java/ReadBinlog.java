import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.TableMapEventData;
import com.github.shyiko.mysql.binlog.event.TransactionPayloadEventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.ColumnType;
import com.github.shyiko.mysql.binlog.event.deserialization.json.JsonBinary;
import java.io.BufferedInputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;

/**
 * Reads a binlog several times with mysql-binlog-connector-java, as it comes, and counts rows.
 *
 * Arguments: WARM_UP_SECONDS PASSES, then file PATH, file-text PATH, or server HOST PORT USER BINLOG. With
 * file-text, JSON documents and TEXT, which the library leaves as bytes, are made strings. Prints a JSON object:
 * the rows of one pass, the number of all passes, and the seconds of each after the warm-up.
 */
public final class ReadBinlog {
    private static final int FILE_BUFFER_BYTES = 1 << 20;
    private static final int SERVER_ID = 4_000_003;

    private static final int WARM_UP_PASSES = 2;

    private final boolean text;
    private final Map<Long, byte[]> columnTypes = new HashMap<>();
    private long rows;
    private long characters;

    private ReadBinlog(boolean text) {
        this.text = text;
    }

    public static void main(String[] arguments) throws IOException {
        double warmUp = Double.parseDouble(arguments[0]);
        int wanted = Integer.parseInt(arguments[1]);
        StringJoiner seconds = new StringJoiner(", ");
        long rows = 0;
        int passes = 0;
        for (long started = System.nanoTime(); wanted > 0; passes++) {
            boolean warm = passes >= WARM_UP_PASSES && System.nanoTime() - started >= warmUp * 1e9;
            ReadBinlog reading = new ReadBinlog(arguments[2].equals("file-text"));
            long begun = System.nanoTime();
            if (arguments[2].equals("server")) {
                reading.server(arguments[3], Integer.parseInt(arguments[4]), arguments[5], arguments[6]);
            } else {
                reading.file(arguments[3]);
            }
            if (warm) {
                seconds.add(Double.toString((System.nanoTime() - begun) / 1e9));
                wanted--;
            }
            rows = reading.rows;
        }
        System.out.println("{\"rows\": " + rows + ", \"passes\": " + passes + ", \"seconds\": [" + seconds + "]}");
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
        client.registerEventListener(event -> {
            try {
                count(event);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        });
        client.connect();
    }

    private void count(Event event) throws IOException {
        EventData data = event.getData();
        if (text && data instanceof TableMapEventData) {
            TableMapEventData map = (TableMapEventData) data;
            columnTypes.put(map.getTableId(), map.getColumnTypes());
        } else if (data instanceof WriteRowsEventData) {
            WriteRowsEventData written = (WriteRowsEventData) data;
            rows += written.getRows().size();
            if (text) {
                makeText(written);
            }
        } else if (data instanceof UpdateRowsEventData) {
            rows += ((UpdateRowsEventData) data).getRows().size();
        } else if (data instanceof DeleteRowsEventData) {
            rows += ((DeleteRowsEventData) data).getRows().size();
        } else if (data instanceof TransactionPayloadEventData) {
            for (Event inner : ((TransactionPayloadEventData) data).getUncompressedEvents()) {
                count(inner);
            }
        }
    }

    /** The workloads with such columns only insert, and their BLOBs are TEXT. */
    private void makeText(WriteRowsEventData written) throws IOException {
        byte[] types = columnTypes.get(written.getTableId());
        for (Serializable[] row : written.getRows()) {
            for (int column = 0; column < row.length; column++) {
                if (row[column] instanceof byte[]) {
                    byte[] raw = (byte[]) row[column];
                    boolean json = (types[column] & 0xFF) == ColumnType.JSON.getCode();
                    String value = json ? JsonBinary.parseAsString(raw) : new String(raw, StandardCharsets.UTF_8);
                    characters += value.length();
                }
            }
        }
    }
}
