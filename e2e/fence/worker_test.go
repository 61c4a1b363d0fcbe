package fence

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// unused are beginnings of permissions that these duties do not use, and what
// does.
var unused = map[string]string{
	"pub llm.status": "a worker that was full twice within seconds asks whether others have room: package bus",
	"pub $JS.API.DIRECT.GET.KV_llm_breakers.>": "two workers that open a breaker at the same moment: package kv",
	"pub $JS.API.DIRECT.GET.KV_llm_features.>": "two workers that store their files at the same moment: package kv",
	"pub $JS.API.STREAM.UPDATE":                "settings that have changed, and servers that can hold replicas: packages kv, jobs and replay",
}

// TestWorkersHaveTheLeastThatWorks does everything under each configuration, and
// then compares what workers sent with what they may.
func TestWorkersHaveTheLeastThatWorks(t *testing.T) {
	used := map[string]bool{}
	var granted *server.Permissions
	for _, f := range forms {
		t.Run(f.file, func(t *testing.T) {
			s := serve(t, f)
			tr := &trace{used: map[string]map[string]bool{}}
			s.SetLoggerV2(tr, false, true, false)
			var log lines
			s.work(t, 2, &log)
			newDuties(t, s).all(t)
			s.work(t, 1, &log) // finds what the others have left
			did, refused := tr.of(s.ids(t, "worker"))
			require.Empty(t, refused)
			require.NotContains(t, log.String(), "ermissions")
			require.NotEmpty(t, did)
			maps.Copy(used, did)
			granted = s.permissions(t, "worker")
		})
	}
	idle := slices.DeleteFunc(list(granted), func(line string) bool {
		return anyOf(maps.Keys(used), func(what string) bool { return covers(line, what) }) ||
			anyOf(maps.Keys(unused), func(beginning string) bool { return strings.HasPrefix(line, beginning) })
	})
	require.Empty(t, idle, "granted and not used")
}

func anyOf(texts iter.Seq[string], is func(string) bool) bool {
	for text := range texts {
		if is(text) {
			return true
		}
	}
	return false
}

// ids are the connections of a user.
func (s *site) ids(t *testing.T, user string) map[uint64]bool {
	t.Helper()
	conns, err := s.Connz(&server.ConnzOptions{Username: true, Limit: 1000})
	require.NoError(t, err)
	ids := map[uint64]bool{}
	for _, c := range conns.Conns {
		if c.AuthorizedUser == user {
			ids[c.Cid] = true
		}
	}
	return ids
}

// permissions are those of a user, as the configuration has them.
func (s *site) permissions(t *testing.T, user string) *server.Permissions {
	t.Helper()
	for _, u := range s.options.Users {
		if u.Username == user {
			return u.Permissions
		}
	}
	require.Fail(t, "no such user")
	return nil
}

func list(p *server.Permissions) (lines []string) {
	for _, subject := range p.Publish.Allow {
		lines = append(lines, "pub "+subject)
	}
	for _, subject := range p.Subscribe.Allow {
		lines = append(lines, "sub "+subject)
	}
	return lines
}

// covers reports whether a permission allows what was done: an operation, a
// subject and perhaps a queue group.
func covers(line, what string) bool {
	granted, done := strings.Fields(line), strings.Fields(what)
	if len(granted) != len(done) || granted[0] != done[0] || len(done) == 3 && granted[2] != done[2] {
		return false
	}
	want, have := strings.Split(granted[1], "."), strings.Split(done[1], ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(have) > i
		case i >= len(have) || token != "*" && token != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}
