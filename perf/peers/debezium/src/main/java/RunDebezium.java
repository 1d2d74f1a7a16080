import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

/**
 * Follows a binlog with Debezium's embedded engine, or takes a snapshot with it, change events as JSON into a file,
 * until enough of them came.
 *
 * Arguments: HOST PORT USER DATABASE FOLDER WARM_UP ROWS, and `binlog FILE` or `snapshot CONNECTIONS`. Prints a JSON
 * object: how many rows came after the first WARM_UP, how long those took, on the clock and of the processor, and how
 * long it was from the start to the first row.
 */
public final class RunDebezium implements DebeziumEngine.ChangeConsumer<ChangeEvent<String, String>> {
    private static final String NAME = "perf";
    private static final int SERVER_ID = 4_000_005;
    private static final int FILE_BUFFER_BYTES = 1 << 20;
    /** Fields of /proc/self/stat after the program's name: processor time as user and in the kernel. */
    private static final int USER_TICKS = 11;
    private static final int SYSTEM_TICKS = 12;
    private static final double TICKS_PER_SECOND = 100;

    private final long begun = System.nanoTime();
    private final CountDownLatch over = new CountDownLatch(1);
    private final OutputStream changes;
    private final long warmUp;
    private final long wanted;
    private long rows;
    private long measured;
    private long firstCame;
    private long warmRows;
    private Moment warm;
    private Moment end;
    private String failure;

    /** What the clocks said. */
    private record Moment(long nanoTime, long userTicks, long systemTicks) {
        static Moment now() throws IOException {
            String told = Files.readString(Path.of("/proc/self/stat"));
            String[] fields = told.substring(told.lastIndexOf(')') + 2).split(" ");
            return new Moment(
                    System.nanoTime(), Long.parseLong(fields[USER_TICKS]), Long.parseLong(fields[SYSTEM_TICKS]));
        }
    }

    private RunDebezium(Path folder, long warmUp, long wanted) throws IOException {
        this.changes = new BufferedOutputStream(
                new FileOutputStream(folder.resolve("changes.json").toFile()), FILE_BUFFER_BYTES);
        this.warmUp = warmUp;
        this.wanted = wanted;
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[4]);
        Properties settings = settings(arguments, folder);
        if (arguments[7].equals("binlog")) {
            writeOffset(folder.resolve("offset"), arguments[8]);
            // There is an offset, but no schema history yet: it is made from the tables as they are.
            settings.put("snapshot.mode", "recovery");
        } else {
            settings.put("snapshot.mode", "initial_only");
            settings.put("snapshot.max.threads", arguments[8]);
        }
        RunDebezium run = new RunDebezium(folder, Long.parseLong(arguments[5]), Long.parseLong(arguments[6]));
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
                .using(settings)
                .notifying(run)
                .using((success, message, error) -> run.ended(success ? null : message + ": " + error))
                .build();
        Thread thread = new Thread(engine);
        thread.start();
        run.over.await();
        run.tell();
        // Its orderly end takes seconds, and has no effect on the figures.
        System.exit(run.failure == null ? 0 : 1);
    }

    @Override
    public void handleBatch(
            List<ChangeEvent<String, String>> batch,
            DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) throws InterruptedException {
        if (rows == 0) {
            firstCame = System.nanoTime();
        }
        try {
            for (ChangeEvent<String, String> change : batch) {
                changes.write(change.value().getBytes(StandardCharsets.UTF_8));
                changes.write('\n');
                committer.markProcessed(change);
            }
            committer.markBatchFinished();
            rows += batch.size();
            if (warm == null && rows >= warmUp) {
                warm = Moment.now();
                warmRows = rows;
            } else if (end == null && rows >= wanted) {
                changes.flush();
                end = Moment.now();
                measured = rows - warmRows;
                over.countDown();
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void ended(String why) {
        failure = why;
        over.countDown();
    }

    private void tell() {
        if (failure != null) {
            System.err.println(failure);
            return;
        }
        System.out.printf(
                "{\"rows\": %d, \"seconds\": %s, \"user_seconds\": %s, \"system_seconds\": %s, "
                        + "\"start_up_seconds\": %s}%n",
                measured,
                (end.nanoTime - warm.nanoTime) / 1e9,
                (end.userTicks - warm.userTicks) / TICKS_PER_SECOND,
                (end.systemTicks - warm.systemTicks) / TICKS_PER_SECOND,
                (firstCame - begun) / 1e9);
    }

    /** As shipped, but without schemas in the output; how it starts is added. */
    private static Properties settings(String[] arguments, Path folder) {
        Properties settings = new Properties();
        settings.putAll(Map.ofEntries(
                Map.entry("name", NAME),
                Map.entry("connector.class", "io.debezium.connector.mysql.MySqlConnector"),
                Map.entry("topic.prefix", NAME),
                Map.entry("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"),
                Map.entry("offset.storage.file.filename", folder.resolve("offset").toString()),
                Map.entry("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"),
                Map.entry("schema.history.internal.file.filename", folder.resolve("history").toString()),
                Map.entry("database.hostname", arguments[0]),
                Map.entry("database.port", arguments[1]),
                Map.entry("database.user", arguments[2]),
                Map.entry("database.password", ""),
                Map.entry("database.server.id", Integer.toString(SERVER_ID)),
                Map.entry("database.ssl.mode", "disabled"),
                Map.entry("database.include.list", arguments[3]),
                Map.entry("include.schema.changes", "false"),
                Map.entry("tombstones.on.delete", "false"),
                Map.entry("converter.schemas.enable", "false")));
        return settings;
    }

    /** What its file offset store would hold had it stopped in front of the first event. */
    private static void writeOffset(Path file, String binlog) throws IOException {
        HashMap<byte[], byte[]> offsets = new HashMap<>();
        offsets.put(
                ("[\"" + NAME + "\",{\"server\":\"" + NAME + "\"}]").getBytes(StandardCharsets.UTF_8),
                ("{\"file\":\"" + binlog + "\",\"pos\":4}").getBytes(StandardCharsets.UTF_8));
        try (ObjectOutputStream output = new ObjectOutputStream(Files.newOutputStream(file))) {
            output.writeObject(offsets);
        }
    }
}
