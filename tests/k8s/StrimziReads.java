import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads each file, named KIND.*.yaml, as Strimzi's operator does, and tells the fields that Strimzi does not know. */
public class StrimziReads {
    static final String MODEL = "io.strimzi.api.kafka.model.";
    static final Map<String, String> CLASSES = Map.of(
            "Kafka", MODEL + "kafka.Kafka", "KafkaNodePool", MODEL + "nodepool.KafkaNodePool",
            "KafkaTopic", MODEL + "topic.KafkaTopic", "KafkaUser", MODEL + "user.KafkaUser");

    public static void main(String[] files) throws Exception {
        ObjectMapper mapper = new ObjectMapper(new YAMLFactory());
        int faults = 0;
        for (String file : files) {
            String kind = Path.of(file).getFileName().toString().split("\\.")[0];
            Object read = mapper.readValue(Files.readString(Path.of(file)), Class.forName(CLASSES.get(kind)));
            for (String field : unknown(read, kind, Collections.newSetFromMap(new IdentityHashMap<>()))) {
                System.out.println(Path.of(file).getFileName() + ": Strimzi knows no " + field);
                faults++;
            }
        }
        System.out.println(files.length + " resources read, " + faults + " unknown fields");
        System.exit(files.length > 0 && faults == 0 ? 0 : 1);
    }

    /** Strimzi's classes keep what they do not know in getAdditionalProperties(). */
    static List<String> unknown(Object object, String at, Set<Object> seen) throws ReflectiveOperationException {
        List<String> found = new ArrayList<>();
        if (object == null || object instanceof Enum || !seen.add(object))
            return found;
        if (object instanceof Collection<?> many) {
            for (Object one : many)
                found.addAll(unknown(one, at + "[]", seen));
            return found;
        }
        if (!object.getClass().getName().matches("io\\.(strimzi|fabric8\\.kubernetes)\\..*"))
            return found;
        for (Method getter : object.getClass().getMethods()) {
            String name = getter.getName();
            if (!name.startsWith("get") || getter.getParameterCount() != 0 || name.equals("getClass"))
                continue;
            Object value = valueOf(getter, object);
            if (!name.equals("getAdditionalProperties"))
                found.addAll(unknown(value, at + "." + name.substring(3), seen));
            else if (value instanceof Map<?, ?> map)
                map.keySet().forEach(key -> found.add(at + "." + key));
        }
        return found;
    }

    static Object valueOf(Method getter, Object object) throws IllegalAccessException {
        try {
            return getter.invoke(object);
        } catch (InvocationTargetException computed) { // a getter that works something out of what is not there
            return null;
        }
    }
}
