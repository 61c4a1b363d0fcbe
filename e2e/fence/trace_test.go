package fence

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// trace is the server's record of what its clients send.
type trace struct {
	mu      sync.Mutex
	used    map[string]map[string]bool // by connection: "pub <subject>" or "sub <subject> <queue>"
	refused []string
}

var _ server.Logger = (*trace)(nil)

func (tr *trace) Noticef(string, ...any) {}
func (tr *trace) Warnf(string, ...any)   {}
func (tr *trace) Fatalf(string, ...any)  {}
func (tr *trace) Debugf(string, ...any)  {}

// Errorf hears of what permissions refuse.
func (tr *trace) Errorf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); strings.Contains(text, "Violation") {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.refused = append(tr.refused, text)
	}
}

var operation = regexp.MustCompile(`cid:(\d+).* - <<- \[(H?PUB|SUB) (.*)\]$`)

// Tracef hears of every operation of every client.
func (tr *trace) Tracef(format string, args ...any) {
	m := operation.FindStringSubmatch(fmt.Sprintf(format, args...))
	if m == nil {
		return
	}
	fields := strings.Fields(m[3])
	what := "pub " + fields[0]
	if m[2] == "SUB" {
		what = strings.Join(append([]string{"sub"}, fields[:len(fields)-1]...), " ")
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.used[m[1]] == nil {
		tr.used[m[1]] = map[string]bool{}
	}
	tr.used[m[1]][what] = true
}

// of is what the connections with these ids did, and what they were refused.
func (tr *trace) of(ids map[uint64]bool) (used map[string]bool, refused []string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	used = map[string]bool{}
	for id := range ids {
		for what := range tr.used[fmt.Sprint(id)] {
			used[what] = true
		}
		for _, text := range tr.refused {
			if strings.Contains(text, fmt.Sprintf("cid:%d ", id)) {
				refused = append(refused, text)
			}
		}
	}
	return used, refused
}
