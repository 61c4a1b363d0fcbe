package llmbus;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonSyntaxException;
import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.Message;
import io.nats.client.impl.Headers;
import io.nats.client.impl.NatsMessage;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** llmbus over jnats: what an application may copy. docs/clients.md tells more. */
public record Llmbus(Connection nats) {
    /** The error that a worker answered with. */
    public static final class Failed extends Exception {
        public final String code;
        public final Duration retryAfter; // zero is unknown

        Failed(JsonObject error) {
            super(error.get("code").getAsString() + ": " + error.get("message").getAsString());
            code = error.get("code").getAsString();
            retryAfter = Duration.ofMillis(error.has("retry_after_ms") ? error.get("retry_after_ms").getAsLong() : 0);
        }
    }

    /** The answer is not whole: a gap, no end, or silence. */
    public static final class Broken extends Exception {
        Broken(String why) {
            super(why);
        }
    }

    /** Nobody serves. */
    public static final class NoResponders extends Exception {}

    /** How a stream is read: frames come on llm.stream.id, or with replyOnly on the reply subject. */
    public record Reading(String id, Duration time, Duration silence, boolean replyOnly) {}

    public static String newId() {
        return UUID.randomUUID().toString();
    }

    /** The answer of a reply, or its error. */
    static JsonObject read(Message message) throws Failed, Broken, NoResponders {
        if (message.isStatusMessage() && message.getStatus().getCode() == 503) throw new NoResponders();
        JsonObject reply = json(message);
        if (reply.has("error")) throw new Failed(reply.getAsJsonObject("error"));
        if (!reply.has("served_by")) throw new Broken("the message is no reply");
        return reply;
    }

    static JsonObject json(Message message) throws Broken {
        try {
            return JsonParser.parseString(new String(message.getData(), java.nio.charset.StandardCharsets.UTF_8)).getAsJsonObject();
        } catch (JsonSyntaxException | IllegalStateException e) {
            throw new Broken("the message is not JSON");
        }
    }

    private static Headers headers(String id, Duration time) {
        return new Headers().put("Llm-Request-Id", id).put("Llm-Timeout-Ms", String.valueOf(time.toMillis() * 9 / 10));
    }

    // [ask]
    public JsonObject ask(String feature, JsonObject request, Duration time) throws Exception {
        Message message = NatsMessage.builder().subject("llm.complete." + feature).headers(headers(newId(), time)).data(request.toString()).build();
        try {
            return read(nats.requestWithTimeout(message, time).get(time.toMillis(), TimeUnit.MILLISECONDS));
        } catch (CancellationException e) { // what jnats makes of no responders
            throw new NoResponders();
        } catch (TimeoutException | ExecutionException e) {
            throw new Broken("no reply");
        }
    }
    // [end]

    // [stream]
    /** Calls show with the whole text so far, and returns the answer. */
    public JsonObject stream(String feature, JsonObject request, Reading how, Consumer<String> show) throws Exception {
        BlockingQueue<Message> messages = new LinkedBlockingQueue<>();
        String inbox = nats.createInbox();
        Dispatcher dispatcher = nats.createDispatcher(messages::add).subscribe(inbox); // listen before you ask
        if (!how.replyOnly) dispatcher.subscribe("llm.stream." + how.id);
        try {
            request.addProperty("stream", true);
            request.addProperty("stream_to", how.replyOnly ? "reply" : "subject");
            Headers headers = headers(how.id, how.time).put("Llm-Ping-Ms", String.valueOf(how.silence.toMillis() / 3));
            nats.publish(NatsMessage.builder().subject("llm.complete." + feature).replyTo(inbox).headers(headers).data(request.toString()).build());
            Reader reader = new Reader(how.replyOnly ? null : inbox, show);
            for (long end = System.nanoTime() + how.time.toNanos(); ; ) {
                Message message = messages.poll(Math.min(how.silence.toNanos(), end - System.nanoTime()), TimeUnit.NANOSECONDS);
                if (message == null) throw new Broken("the worker fell silent");
                JsonObject answer = reader.take(message);
                if (answer != null) return answer;
            }
        } finally {
            nats.closeDispatcher(dispatcher);
        }
    }
    // [end]

    /** The rules for readers. */
    private static final class Reader {
        private final String inbox; // of the whole answer; null where frames come there
        private final Consumer<String> show;
        private String text = "";
        private long seq = 0;
        private boolean gap = false;

        Reader(String inbox, Consumer<String> show) {
            this.inbox = inbox;
            this.show = show;
        }

        /** Returns the answer with the last message, and null before. */
        JsonObject take(Message message) throws Failed, Broken, NoResponders {
            if (message.isStatusMessage() && message.getStatus().getCode() == 503) throw new NoResponders();
            if (message.getSubject().equals(inbox)) { // the whole answer, whatever became of the frames
                JsonObject answer = read(message);
                String content = answer.get("content").getAsString();
                if (!content.startsWith(text)) throw new Broken("frames were lost, and the answer does not go on from them");
                show.accept(content);
                return answer;
            }
            if (message.getData().length == 0) throw new Broken("the stream ended without an end");
            JsonObject frame = json(message);
            long number = frame.get("seq").getAsLong();
            if (number == 1 && text.isEmpty()) seq = 0; // another worker has begun
            gap |= number != ++seq;
            if (gap && inbox == null) throw new Broken("frames were lost");
            if (gap) return null; // show nothing after a gap
            switch (frame.get("type").getAsString()) {
                case "start" -> text = ""; // this attempt replaces what an earlier one has shown
                case "delta" -> show.accept(text += frame.get("text").getAsString());
                case "error" -> throw new Failed(frame.getAsJsonObject("error"));
                case "end" -> {
                    if (inbox == null) {
                        JsonObject answer = frame.getAsJsonObject("response");
                        answer.addProperty("content", text);
                        return answer;
                    }
                }
                default -> {} // of a later version, or a ping
            }
            return null;
        }
    }
}
