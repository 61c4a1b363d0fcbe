package llmbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import io.nats.client.Connection;
import io.nats.client.KeyValue;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.Subscription;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueWatcher;
import io.nats.client.impl.Headers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Every part of llmbus from Java. NATS_URL and the rest come from examples/run. */
class ExamplesTest {
    static final Duration TIME = Duration.ofSeconds(30);
    static Connection nats;
    static Llmbus llmbus;

    @BeforeAll
    static void connect() throws Exception {
        nats = Nats.connect(System.getenv("NATS_URL"));
        llmbus = new Llmbus(nats);
    }

    @AfterAll
    static void close() throws Exception {
        nats.close();
    }

    static JsonObject hello() {
        JsonObject request = new JsonObject();
        request.addProperty("prompt", "hello");
        return request;
    }

    /** The code of the error that asking for the feature ends in, or null. */
    static String codeOf(String feature) throws Exception {
        try {
            llmbus.ask(feature, hello(), TIME);
            return null;
        } catch (Llmbus.Failed failed) {
            return failed.code;
        }
    }

    @Test
    void aRequestAndItsReply() throws Exception {
        JsonObject answer = llmbus.ask("support", hello(), TIME);
        assertEquals("model", answer.get("served_by").getAsString());
        assertFalse(answer.get("content").getAsString().isEmpty());
    }

    void streamed(boolean replyOnly) throws Exception {
        List<String> shown = new ArrayList<>();
        JsonObject answer = llmbus.stream("support", hello(), new Llmbus.Reading(Llmbus.newId(), TIME, TIME, replyOnly), shown::add);
        assertTrue(shown.size() > 5);
        assertEquals(answer.get("content").getAsString(), shown.get(shown.size() - 1));
    }

    @Test
    void aStreamOnItsOwnSubject() throws Exception {
        streamed(false);
    }

    @Test
    void aStreamOnTheInbox() throws Exception {
        streamed(true);
    }

    @Test
    void cancel() {
        // [cancel]
        String id = Llmbus.newId();
        var how = new Llmbus.Reading(id, TIME, TIME, false);
        var failed = assertThrows(Llmbus.Failed.class, () -> llmbus.stream("slow", hello(), how, text -> nats.publish("llm.cancel." + id, null)));
        assertEquals("cancelled", failed.code);
        // [end]
    }

    @Test
    void anErrorAndWhenToComeBack() throws Exception {
        // [error]
        var failed = assertThrows(Llmbus.Failed.class, () -> llmbus.ask("limited", hello(), TIME));
        assertEquals("rate_limited", failed.code);
        assertTrue(failed.retryAfter.toMillis() > 0);
        Message message = nats.request("llm.complete.limited", hello().toString().getBytes(), TIME);
        assertEquals("429", message.getHeaders().getFirst("Nats-Service-Error-Code"));
        assertTrue(Integer.parseInt(message.getHeaders().getFirst("Retry-After")) > 0); // seconds
        // [end]
    }

    @Test
    void noResponders() throws Exception {
        // [no_responders]
        try (Connection empty = Nats.connect(System.getenv("NATS_EMPTY_URL"))) {
            assertThrows(Llmbus.NoResponders.class, () -> new Llmbus(empty).ask("support", hello(), TIME));
        }
        // [end]
    }

    @Test
    void aJobAndItsResult() throws Exception {
        // [job]
        String id = Llmbus.newId();
        Subscription results = nats.subscribe("llm.results." + id);
        nats.jetStream().publish("llm.jobs.support", new Headers().put("Llm-Request-Id", id), hello().toString().getBytes());
        JsonObject answer = Llmbus.read(results.nextMessage(TIME)); // it also stays in the stream LLM_RESULTS for a day
        // [end]
        assertFalse(answer.get("content").getAsString().isEmpty());
    }

    @Test
    void breakers() throws Exception {
        CountDownLatch seen = new CountDownLatch(1);
        // [breakers]
        Subscription changes = nats.subscribe("llm.kv.breakers.>"); // each change, on plain NATS
        KeyValue bucket = nats.keyValue("llm_breakers");
        var watch = bucket.watchAll(new KeyValueWatcher() { // what is stored, then each change
            public void watch(KeyValueEntry entry) {
                if (entry.getKey().equals("sim.sim-status-503")) seen.countDown();
            }

            public void endOfData() {}
        });
        // [end]
        Message change;
        do assertTrue(codeOf("failing") != null); while ((change = changes.nextMessage(Duration.ofMillis(20))) == null);
        assertEquals("llm.kv.breakers.sim.sim-status-503", change.getSubject());
        assertTrue(seen.await(10, TimeUnit.SECONDS));
        watch.unsubscribe();
    }

    @Test
    void aKillSwitch() throws Exception {
        // [kill_switch]
        KeyValue flags = nats.keyValue("llm_flags");
        flags.put("feature.switched", "off @ann a drill");
        while (!"switched_off".equals(codeOf("switched")));
        flags.put("feature.switched", "on");
        while (codeOf("switched") != null);
        // [end]
    }
}
