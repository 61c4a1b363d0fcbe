package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parrotKinds are the adapters, named as their kind and API.
var parrotKinds = []string{"openai", "openai-responses", "anthropic", "ollama", "gemini"}

// parrotModes are what becomes of a call: a status, or a fault under 200.
var parrotModes = []string{
	"400", "401", "403", "404", "408", "413", "429", "500", "529", // an error in JSON
	"html", "text", "redirect", "badredirect", "garbage", "badheader", "cut",
	"names", "finish", "tool", "schema", "empty", "failed", "brokenchunk", "errorevent",
}

var modeInCall = regexp.MustCompile(`mode-([a-z0-9]+)`)

// startParrot serves all protocols and repeats the canaries wherever it can.
func startParrot(t *testing.T) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		found := modeInCall.FindStringSubmatch(r.URL.Path + string(body))
		if found == nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		p := parrot{w, protocolOf(r.URL.Path), found[1]}
		p.answer()
	}))
	t.Cleanup(srv.Close)
	require.NotEmpty(t, srv.URL)
	return srv.URL
}

func protocolOf(path string) string {
	for protocol, end := range map[string]string{"openai": "/chat/completions", "responses": "/responses", "anthropic": "/messages", "ollama": "/api/chat"} {
		if strings.HasSuffix(path, end) {
			return protocol
		}
	}
	return "gemini"
}

type parrot struct {
	http.ResponseWriter
	protocol, mode string
}

var allCanaries = keyCanary + " " + promptCanary + " " + answerCanary

func (p parrot) answer() {
	for name, canary := range map[string]string{
		"X-Request-Id": answerCanary, "Request-Id": keyCanary, "Apim-Request-Id": promptCanary, "Retry-After": promptCanary,
		"X-Should-Retry": keyCanary, "Www-Authenticate": allCanaries, "Server": answerCanary, keyCanary: promptCanary,
	} {
		p.Header().Set(name, canary)
	}
	if status, err := strconv.Atoi(p.mode); err == nil {
		p.send(status, fmt.Sprintf(`{"type":"error","error":{"message":%q,"code":%q,"type":%q,"status":%q,"param":%q,
			"details":[{"reason":%q,"metadata":{"x":%[1]q}}],"innererror":{"code":%[2]q},"metadata":{"error_type":%[3]q}},"request_id":%[2]q}`,
			allCanaries, keyCanary, promptCanary, answerCanary, allCanaries, answerCanary))
		return
	}
	switch p.mode {
	case "html":
		p.send(502, "<html>"+allCanaries+"</html>")
	case "text":
		p.send(500, allCanaries)
	case "redirect":
		p.Header().Set("Location", "http://"+keyCanary+".invalid/"+promptCanary)
		p.send(307, allCanaries)
	case "badredirect":
		p.Header().Set("Location", "http://%zz"+allCanaries)
		p.send(302, allCanaries)
	case "garbage":
		p.raw("HTTP/9.9 " + allCanaries + "\r\n\r\n")
	case "badheader":
		p.raw("HTTP/1.1 200 OK\r\n" + allCanaries + "\r\n\r\n")
	case "cut":
		p.raw("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + `{"a":"` + allCanaries)
	case "brokenchunk":
		p.send(200, p.piece()+p.frame(`{"`+allCanaries))
	case "errorevent":
		p.send(200, p.piece()+p.frame(fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%q,"message":%q}}`, answerCanary, keyCanary, allCanaries)))
	default:
		p.send(200, p.whole())
	}
}

func (p parrot) send(status int, body string) {
	p.WriteHeader(status)
	_, _ = io.WriteString(p, body)
}

func (p parrot) raw(text string) {
	conn, _, err := http.NewResponseController(p).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// whole is an answer in one body; its mode says which part of it is off.
func (p parrot) whole() string {
	text, finish, tool := answerCanary, map[string]string{"openai": "stop", "responses": "completed", "anthropic": "end_turn", "ollama": "stop", "gemini": "STOP"}[p.protocol], ""
	switch p.mode {
	case "finish":
		finish = keyCanary
	case "tool":
		text, tool = "", promptCanary
	case "empty":
		text = ""
	case "failed":
		finish = map[string]string{"openai": "error", "responses": "failed", "anthropic": "refusal", "ollama": "load", "gemini": "SAFETY"}[p.protocol]
	}
	model := map[bool]string{true: keyCanary, false: answerCanary}[p.mode == "finish"]
	return fmt.Sprintf(map[string]string{
		"openai":    `{"id":%[5]q,"object":"chat.completion","model":%[1]q,"system_fingerprint":%[5]q,"choices":[{"index":0,"message":{"role":"assistant","content":%[2]q%[4]s},"finish_reason":%[3]q}]}`,
		"responses": `{"id":%[5]q,"object":"response","model":%[1]q,"status":%[3]q,"error":{"code":%[5]q,"message":%[5]q},"output":[{"type":"message","content":[{"type":"output_text","text":%[2]q}]}%[4]s]}`,
		"anthropic": `{"id":%[5]q,"type":"message","model":%[1]q,"content":[{"type":"text","text":%[2]q}%[4]s],"stop_reason":%[3]q}`,
		"ollama":    `{"model":%[1]q,"created_at":%[5]q,"message":{"role":"assistant","content":%[2]q%[4]s},"done":true,"done_reason":%[3]q}`,
		"gemini":    `{"responseId":%[5]q,"modelVersion":%[1]q,"candidates":[{"content":{"parts":[{"text":%[2]q}%[4]s]},"finishReason":%[3]q}]}`,
	}[p.protocol], model, text, finish, p.toolCall(tool), promptCanary) + "\n"
}

func (p parrot) toolCall(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(map[string]string{
		"openai":    `,"tool_calls":[{"id":%[1]q,"type":"function","function":{"name":%[1]q,"arguments":"{}"}}]`,
		"responses": `,{"type":"function_call","call_id":%[1]q,"name":%[1]q,"arguments":"{}"}`,
		"anthropic": `,{"type":"tool_use","id":%[1]q,"name":%[1]q,"input":{}}`,
		"ollama":    `,"tool_calls":[{"function":{"name":%[1]q,"arguments":{}}}]`,
		"gemini":    `,{"functionCall":{"name":%[1]q,"args":{}}}`,
	}[p.protocol], name)
}

// piece is the beginning of a stream, with text that the caller may see.
func (p parrot) piece() string {
	return p.frame(fmt.Sprintf(map[string]string{
		"openai":    `{"model":%[1]q,"choices":[{"index":0,"delta":{"content":%[1]q}}]}`,
		"responses": `{"type":"response.output_text.delta","delta":%[1]q}`,
		"anthropic": `{"type":"content_block_delta","delta":{"type":"text_delta","text":%[1]q}}`,
		"ollama":    `{"model":%[1]q,"message":{"content":%[1]q},"done":false}`,
		"gemini":    `{"modelVersion":%[1]q,"candidates":[{"content":{"parts":[{"text":%[1]q}]}}]}`,
	}[p.protocol], answerCanary))
}

// frame is one event or line.
func (p parrot) frame(data string) string {
	if p.protocol == "ollama" {
		return data + "\n"
	}
	return "event: " + map[bool]string{true: "message", false: "error"}[strings.HasSuffix(data, "}")] + "\ndata: " + data + "\n\n"
}
