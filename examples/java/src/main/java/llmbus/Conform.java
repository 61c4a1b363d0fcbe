package llmbus;

import com.google.gson.JsonObject;
import io.nats.client.Connection;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.Subscription;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Lets the conformance kit judge Llmbus; docs/conformance.md says how. */
public final class Conform {
    public static void main(String[] args) throws Exception {
        try (Connection nats = Nats.connect(System.getenv("NATS_URL"))) {
            Subscription tasks = nats.subscribe("conformance.client");
            for (;;) {
                Message message = tasks.nextMessage(Duration.ZERO);
                JsonObject task = Llmbus.json(message);
                if (task.get("do").getAsString().equals("end")) return;
                nats.publish(message.getReplyTo(), carryOut(nats, task).toString().getBytes(java.nio.charset.StandardCharsets.UTF_8));
            }
        }
    }

    private static JsonObject carryOut(Connection nats, JsonObject task) throws Exception {
        AtomicReference<String> shown = new AtomicReference<>("");
        AtomicInteger shows = new AtomicInteger();
        String id = Llmbus.newId();
        JsonObject report = new JsonObject();
        try {
            JsonObject answer = run(nats, task, id, text -> {
                shown.set(text);
                if (task.has("cancel_after") && shows.incrementAndGet() == task.get("cancel_after").getAsInt()) {
                    nats.publish("llm.cancel." + id, null);
                }
            });
            report.addProperty("outcome", answer == null ? "unsupported" : "answer");
            if (answer != null) report.add("text", answer.get("content"));
            return report;
        } catch (Llmbus.Failed failed) {
            report.addProperty("outcome", "error");
            report.addProperty("code", failed.code);
            report.addProperty("retry_after_ms", failed.retryAfter.toMillis());
        } catch (Llmbus.NoResponders e) {
            report.addProperty("outcome", "no_responders");
        } catch (Llmbus.Broken e) {
            report.addProperty("outcome", "broken");
        }
        report.addProperty("text", shown.get());
        return report;
    }

    private static JsonObject run(Connection nats, JsonObject task, String id, java.util.function.Consumer<String> show) throws Exception {
        Llmbus llmbus = new Llmbus(nats);
        JsonObject request = new JsonObject();
        request.add("prompt", task.get("prompt"));
        String what = task.get("do").getAsString();
        if (!what.equals("complete") && !what.startsWith("stream")) return null;
        String feature = task.get("feature").getAsString();
        Duration time = Duration.ofMillis(task.get("timeout_ms").getAsLong());
        if (what.equals("complete")) return llmbus.ask(feature, request, time);
        Duration silence = Duration.ofMillis(task.get("silence_ms").getAsLong());
        return llmbus.stream(feature, request, new Llmbus.Reading(id, time, silence, what.equals("stream_reply")), show);
    }
}
