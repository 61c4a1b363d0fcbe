package app_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/app"
)

// writes counts what it is given.
type writes struct {
	mu   sync.Mutex
	list []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, string(p))
	return len(p), nil
}

func (w *writes) lines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(strings.Join(w.list, ""), "\n")
}

// logging runs a test with a log of that format in fake time.
func logging(t *testing.T, format string, test func(t *testing.T, log *slog.Logger, end func(), w *writes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		env, w := app.Defaults(""), &writes{}
		env.LogFormat = format
		log, end := env.NewLog(w)
		defer end()
		test(t, log, end, w)
	})
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestAQuietLogWritesAtOnce(t *testing.T) {
	logging(t, "text", func(t *testing.T, log *slog.Logger, _ func(), w *writes) {
		for n := range 10 {
			log.Info("x")
			require.Len(t, w.list, n+1)
			pass(5 * time.Millisecond)
		}
	})
}

func TestLinesThatComeCloselyAreWrittenTogetherAndInOrder(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		logging(t, format, func(t *testing.T, log *slog.Logger, _ func(), w *writes) {
			for n := range 100 {
				log.With("a", 1).WithGroup("g").Info("x", "n", n)
			}
			require.Equal(t, 1, w.lines(), "the first did not wait")
			pass(20 * time.Millisecond)
			require.Equal(t, 100, w.lines())
			require.Len(t, w.list, 2)
			for n, line := range strings.Split(strings.TrimSpace(strings.Join(w.list, "")), "\n") {
				require.Contains(t, line, fmt.Sprint(n))
			}
		})
	}
}

func TestAWarningDoesNotWaitNorOvertake(t *testing.T) {
	logging(t, "text", func(t *testing.T, log *slog.Logger, _ func(), w *writes) {
		for range 10 {
			log.Info("x")
		}
		log.With("a", 1).Warn("y")
		require.Equal(t, 11, w.lines())
		require.Contains(t, w.list[1], "y a=1")
		require.Less(t, strings.LastIndex(w.list[1], "x"), strings.Index(w.list[1], "y a=1"))
	})
}

func TestLinesThatWaitAreBounded(t *testing.T) {
	logging(t, "text", func(t *testing.T, log *slog.Logger, _ func(), w *writes) {
		for range 1000 {
			log.Info(strings.Repeat("x", 100))
		}
		synctest.Wait() // no time has passed
		require.Equal(t, 1000, w.lines(), "many lines do not wait")
		require.Less(t, len(w.list), 10)
		for range 20_000 {
			log.Info(strings.Repeat("x", 100))
		}
		require.Greater(t, w.lines(), 15_000, "who logs writes when too many wait")
		log.Info(strings.Repeat("x", 2_000_000)) // a line that is larger than all that may wait
		require.Equal(t, 21_001, w.lines())
	})
}

// stuck takes nothing until it is told to.
type stuck struct {
	writes
	free chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	return s.writes.Write(p)
}

func TestWhoLogsDoesNotWaitForAFileThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{free: make(chan struct{})}
		log, end := app.Defaults("").NewLog(w)
		defer end()
		go log.Info("first") // which finds out
		pass(10 * time.Millisecond)
		for range 100 {
			log.Info("x")
		}
		close(w.free)
		synctest.Wait()
		end()
		require.Equal(t, 101, w.lines())
	})
}

func TestTheEndOfALogWritesWhatWaits(t *testing.T) {
	logging(t, "text", func(t *testing.T, log *slog.Logger, end func(), w *writes) {
		for range 10 {
			log.Info("x")
		}
		end()
		require.Equal(t, 10, w.lines())
		log.Info("x")
		require.Equal(t, 11, w.lines(), "who logs after it does not wait")
		end()
		require.Equal(t, 11, w.lines())
	})
}
