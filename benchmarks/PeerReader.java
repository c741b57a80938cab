import com.github.shyiko.mysql.binlog.BinaryLogFileReader;
import com.github.shyiko.mysql.binlog.event.DeleteRowsEventData;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.UpdateRowsEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.util.Map;

/**
 * Reads a binlog with the reader inside Debezium once for each line of standard input, and prints each run as a line
 * of JSON: row changes, sums over two columns of all after images, seconds on the wall and of processor time.
 *
 * Arguments: the file, the position of a number column, the position of a text column.
 */
public class PeerReader {
    private final int number, text;
    private long rows, numbers, characters;

    private PeerReader(int number, int text) {
        this.number = number;
        this.text = text;
    }

    public static void main(String[] given) throws Exception {
        var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        var turns = new BufferedReader(new InputStreamReader(System.in));
        while (turns.readLine() != null) {
            long wall = System.nanoTime(), processor = system.getProcessCpuTime();
            var reading = new PeerReader(Integer.parseInt(given[1]), Integer.parseInt(given[2]));
            reading.read(given[0]);
            double seconds = (System.nanoTime() - wall) / 1e9, work = (system.getProcessCpuTime() - processor) / 1e9;
            System.out.printf(
                "{\"rows\": %d, \"numbers\": %d, \"characters\": %d, \"wall\": %f, \"processor\": %f}%n",
                reading.rows, reading.numbers, reading.characters, seconds, work);
        }
    }

    private void read(String path) throws Exception {
        var deserializer = new EventDeserializer();
        try (var stream = new BufferedInputStream(new FileInputStream(path), 1 << 20);
                var reader = new BinaryLogFileReader(stream, deserializer)) {
            for (Event event = reader.readEvent(); event != null; event = reader.readEvent()) {
                EventData data = event.getData();
                if (data instanceof WriteRowsEventData) {
                    for (Serializable[] row : ((WriteRowsEventData) data).getRows()) {
                        add(row);
                    }
                } else if (data instanceof UpdateRowsEventData) {
                    for (Map.Entry<Serializable[], Serializable[]> row : ((UpdateRowsEventData) data).getRows()) {
                        add(row.getValue());
                    }
                } else if (data instanceof DeleteRowsEventData) {
                    rows += ((DeleteRowsEventData) data).getRows().size();
                }
            }
        }
    }

    private void add(Serializable[] row) {
        rows++;
        if (row[number] != null) {
            numbers += ((Number) row[number]).longValue();
        }
        if (row[text] != null) {
            characters += row[text].toString().length();
        }
    }
}
