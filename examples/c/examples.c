/* Every part of llmbus from C, with libnats and cJSON as Debian has them.
 * NATS_URL and NATS_EMPTY_URL come from examples/run. docs/clients.md tells more. */
#include <cjson/cJSON.h>
#include <nats/nats.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO "{\"prompt\":\"hello\"}"
#define STREAM "{\"prompt\":\"hello\",\"stream\":true,\"stream_to\":\"%s\"}"
#define TIME 30000 /* ms */

#define CHECK(what)                                                                   \
  do {                                                                                \
    if (!(what)) {                                                                    \
      fprintf(stderr, "%s:%d: %s: not so\n", __FILE__, __LINE__, #what);              \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)
#define OK(call) CHECK((call) == NATS_OK)

static natsConnection *nc;

static void new_id(char id[64]) {
  unsigned char random[16];
  FILE *f = fopen("/dev/urandom", "r");
  CHECK(f && fread(random, sizeof random, 1, f) == 1);
  fclose(f);
  for (int i = 0; i < 16; i++) sprintf(id + 2 * i, "%02x", random[i]);
}

/* A field of the JSON in a message, or "" if there is none; of an error, "error.code". */
static const char *field(natsMsg *msg, const char *outer, const char *name) {
  static char value[4096];
  cJSON *json = cJSON_ParseWithLength(natsMsg_GetData(msg), natsMsg_GetDataLength(msg));
  cJSON *in = outer ? cJSON_GetObjectItem(json, outer) : json;
  cJSON *item = cJSON_GetObjectItem(in, name);
  if (cJSON_IsNumber(item)) snprintf(value, sizeof value, "%.0f", item->valuedouble);
  else snprintf(value, sizeof value, "%s", cJSON_IsString(item) ? item->valuestring : "");
  cJSON_Delete(json);
  return value;
}

static natsMsg *request_message(const char *feature, const char *id, const char *reply, const char *json) {
  char subject[128];
  natsMsg *msg;
  snprintf(subject, sizeof subject, "llm.complete.%s", feature);
  OK(natsMsg_Create(&msg, subject, reply, json, (int)strlen(json)));
  OK(natsMsgHeader_Set(msg, "Llm-Request-Id", id));
  OK(natsMsgHeader_Set(msg, "Llm-Timeout-Ms", "27000"));
  return msg;
}

/* [ask] */
static natsStatus ask(natsConnection *nats, natsMsg **reply, const char *feature) {
  char id[64];
  new_id(id);
  natsMsg *msg = request_message(feature, id, NULL, HELLO);
  natsStatus s = natsConnection_RequestMsg(reply, nats, msg, TIME); /* NATS_NO_RESPONDERS: nobody serves */
  natsMsg_Destroy(msg);
  return s; /* the reply has "served_by", or "error" with its "code" */
}
/* [end] */

/* What asking for the feature ends in: an error's code, or "". */
static const char *code_of(const char *feature) {
  static char code[64];
  natsMsg *reply;
  OK(ask(nc, &reply, feature));
  snprintf(code, sizeof code, "%s", field(reply, "error", "code"));
  natsMsg_Destroy(reply);
  return code;
}

/* [stream] */
/* Reads frames up to the last and returns its type: end, error, or broken after a gap or silence. */
static const char *read_frames(natsSubscription *frames, const char *cancel, char *text, size_t size) {
  for (int seq = 1;; seq++) {
    natsMsg *msg;
    if (natsSubscription_NextMsg(&msg, frames, TIME) != NATS_OK) return "broken";
    char type[16];
    snprintf(type, sizeof type, "%s", field(msg, NULL, "type"));
    bool gap = atoi(field(msg, NULL, "seq")) != seq; /* an empty message is one, too */
    if (strcmp(type, "start") == 0) text[0] = 0;     /* this attempt replaces what was shown */
    if (strcmp(type, "delta") == 0) strncat(text, field(msg, NULL, "text"), size - strlen(text) - 1);
    if (cancel && strcmp(type, "delta") == 0) OK(natsConnection_Publish(nc, cancel, NULL, 0));
    natsMsg_Destroy(msg);
    if (gap) return "broken";
    if (strcmp(type, "end") == 0) return "end";
    if (strcmp(type, "error") == 0) return "error";
  }
}
/* [end] */

static void a_request_and_its_reply(void) {
  natsMsg *reply;
  OK(ask(nc, &reply, "support"));
  CHECK(strcmp(field(reply, NULL, "served_by"), "model") == 0);
  CHECK(field(reply, NULL, "content")[0]);
  natsMsg_Destroy(reply);
}

static void streams(const char *to) {
  char id[64], subject[128], json[128], text[4096] = "";
  natsInbox *inbox;
  natsSubscription *frames;
  new_id(id);
  OK(natsInbox_Create(&inbox));
  snprintf(subject, sizeof subject, "llm.stream.%s", id);
  snprintf(json, sizeof json, STREAM, to);
  bool reply = strcmp(to, "reply") == 0;
  OK(natsConnection_SubscribeSync(&frames, nc, reply ? inbox : subject)); /* listen before you ask */
  natsMsg *msg = request_message("support", id, inbox, json);
  OK(natsConnection_PublishMsg(nc, msg));
  CHECK(strcmp(read_frames(frames, NULL, text, sizeof text), "end") == 0 && text[0]);
  if (reply) { /* the empty message after the last frame */
    natsMsg *last;
    OK(natsSubscription_NextMsg(&last, frames, TIME));
    CHECK(natsMsg_GetDataLength(last) == 0);
    natsMsg_Destroy(last);
  }
  natsMsg_Destroy(msg);
  natsSubscription_Destroy(frames);
  natsInbox_Destroy(inbox);
}

static void cancel(void) {
  /* [cancel] */
  char id[64], subject[128], cancel[128], text[4096] = "";
  natsSubscription *frames;
  new_id(id);
  snprintf(subject, sizeof subject, "llm.stream.%s", id);
  snprintf(cancel, sizeof cancel, "llm.cancel.%s", id);
  OK(natsConnection_SubscribeSync(&frames, nc, subject));
  natsMsg *msg = request_message("slow", id, NULL, "{\"prompt\":\"a long story\",\"stream\":true}");
  OK(natsConnection_PublishMsg(nc, msg));
  CHECK(strcmp(read_frames(frames, cancel, text, sizeof text), "error") == 0);
  /* [end] */
  natsMsg_Destroy(msg);
  natsSubscription_Destroy(frames);
}

static void an_error_and_when_to_come_back(void) {
  /* [error] */
  natsMsg *reply;
  const char *number, *seconds;
  OK(ask(nc, &reply, "limited"));
  CHECK(strcmp(field(reply, "error", "code"), "rate_limited") == 0);
  OK(natsMsgHeader_Get(reply, "Nats-Service-Error-Code", &number));
  OK(natsMsgHeader_Get(reply, "Retry-After", &seconds));
  CHECK(strcmp(number, "429") == 0 && atoi(seconds) > 0);
  /* [end] */
  natsMsg_Destroy(reply);
}

static void no_responders(void) {
  /* [no_responders] */
  natsConnection *empty;
  natsMsg *reply;
  OK(natsConnection_ConnectTo(&empty, getenv("NATS_EMPTY_URL")));
  CHECK(ask(empty, &reply, "support") == NATS_NO_RESPONDERS);
  /* [end] */
  natsConnection_Destroy(empty);
}

static void a_job_and_its_result(jsCtx *js) {
  /* [job] */
  char id[64], subject[128];
  natsSubscription *results;
  natsMsg *job, *result;
  new_id(id);
  snprintf(subject, sizeof subject, "llm.results.%s", id);
  OK(natsConnection_SubscribeSync(&results, nc, subject));
  OK(natsMsg_Create(&job, "llm.jobs.support", NULL, HELLO, sizeof HELLO - 1));
  OK(natsMsgHeader_Set(job, "Llm-Request-Id", id));
  OK(js_PublishMsg(NULL, js, job, NULL, NULL));
  OK(natsSubscription_NextMsg(&result, results, TIME)); /* it also stays in the stream LLM_RESULTS for a day */
  CHECK(field(result, NULL, "content")[0]);
  /* [end] */
  natsMsg_Destroy(job);
  natsMsg_Destroy(result);
  natsSubscription_Destroy(results);
}

static void breakers(jsCtx *js) {
  /* [breakers] */
  natsSubscription *changes;
  kvStore *bucket;
  kvWatcher *watch;
  OK(natsConnection_SubscribeSync(&changes, nc, "llm.kv.breakers.>")); /* each change, on plain NATS */
  OK(js_KeyValue(&bucket, js, "llm_breakers"));
  OK(kvStore_WatchAll(&watch, bucket, NULL)); /* what is stored, then each change */
  /* [end] */
  natsMsg *change;
  do CHECK(code_of("failing")[0]);
  while (natsSubscription_NextMsg(&change, changes, 20) != NATS_OK);
  CHECK(strcmp(natsMsg_GetSubject(change), "llm.kv.breakers.sim.sim-status-503") == 0);
  CHECK(field(change, NULL, "state")[0]);
  natsMsg_Destroy(change);
  for (bool seen = false; !seen;) {
    kvEntry *entry = NULL;
    OK(kvWatcher_Next(&entry, watch, TIME));
    seen = entry && strcmp(kvEntry_Key(entry), "sim.sim-status-503") == 0; /* NULL ends what is stored */
    kvEntry_Destroy(entry);
  }
  kvWatcher_Destroy(watch);
  kvStore_Destroy(bucket);
  natsSubscription_Destroy(changes);
}

static void a_kill_switch(jsCtx *js) {
  /* [kill_switch] */
  kvStore *flags;
  OK(js_KeyValue(&flags, js, "llm_flags"));
  OK(kvStore_PutString(NULL, flags, "feature.switched", "off @ann a drill"));
  while (strcmp(code_of("switched"), "switched_off") != 0);
  OK(kvStore_PutString(NULL, flags, "feature.switched", "on"));
  while (code_of("switched")[0]);
  /* [end] */
  kvStore_Destroy(flags);
}

int main(void) {
  jsCtx *js;
  OK(natsConnection_ConnectTo(&nc, getenv("NATS_URL")));
  OK(natsConnection_JetStream(&js, nc, NULL));
  a_request_and_its_reply();
  streams("subject");
  streams("reply");
  cancel();
  an_error_and_when_to_come_back();
  no_responders();
  a_job_and_its_result(js);
  breakers(js);
  a_kill_switch(js);
  jsCtx_Destroy(js);
  natsConnection_Destroy(nc);
  nats_Close();
  puts("9 examples passed");
  return 0;
}
