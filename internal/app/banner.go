package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/subjects"
)

// banner says in a few lines what runs and what to do next.
func (w *worker) banner(server *Server) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-10s"+format+"\n", append([]any{name}, args...)...)
	}
	fmt.Fprintf(&b, "llmbus %s, worker %s\n", w.opts.Version, w.name)
	line("NATS", "%s", w.where(server))
	if w.door != nil {
		line("HTTP", "%s", w.door.describe())
		line("page", "%s", w.door.describePage())
	}
	cfg := w.policy.inForce.Load()
	for i, f := range featuresOf(cfg) {
		line(heading("features", i), "%s: %s", f.Name, strings.Join(f.Targets, ", then "))
	}
	for i, p := range cfg.Providers {
		line(heading("providers", i), "%s", describe(p))
	}
	if onlyEcho(cfg) {
		b.WriteString("\n  NO MODEL ANSWERS: no provider was found, so that echo repeats every question.\n" +
			"  Set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_BASE_URL and start again.\n")
	}
	if names := w.router.Features(); len(names) > 0 {
		name := names[0]
		if slices.Contains(names, "default") {
			name = "default"
		}
		b.WriteString("\n")
		env, flag := elsewhere(server)
		line("try", `%s%s ask %s "hello"`, env, cmp.Or(w.opts.Command, "broker"), name)
		line("", `nats%s req %s '{"prompt":"hello"}' --timeout 30s`, flag, subjects.Complete(name))
	}
	return b.String()
}

// elsewhere is what commands need to find an embedded server that is not where
// they look by themselves.
func elsewhere(server *Server) (env, flag string) {
	if server == nil || server.URL() == "nats://"+defaultListen {
		return "", ""
	}
	return "LLMBUS_LISTEN=" + strings.TrimPrefix(server.URL(), "nats://") + " ", " -s " + server.URL()
}

func heading(text string, i int) string {
	if i > 0 {
		return ""
	}
	return text
}

func (w *worker) where(server *Server) string {
	if server != nil {
		return fmt.Sprintf("%s (embedded, data in %s)", server.URL(), server.dir)
	}
	return w.conn.ConnectedUrlRedacted()
}

func describe(p *config.Provider) string {
	text := p.Name
	if string(p.Kind) != p.Name {
		text += " (" + string(p.Kind) + ")"
	}
	switch {
	case p.KeyEnv != "":
		text += ", key from " + p.KeyEnv
	case p.KeyFile != "":
		text += ", key from a file"
	}
	return text
}

func onlyEcho(cfg *config.Config) bool {
	return !slices.ContainsFunc(cfg.Providers, func(p *config.Provider) bool { return p.Kind != config.KindEcho })
}
