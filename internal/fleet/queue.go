package fleet

import (
	"context"
	"time"

	"github.com/llmbus/llmbus/subjects"
)

// jobCounts is what the streams of jobs held when they were last read.
type jobCounts struct {
	Jobs
	failed bool // the last read
}

// count reads the numbers of the streams of jobs again and again.
func (w *Watch) count(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		if w.conn.IsConnected() {
			w.countOnce(ctx)
		}
		w.had(PartJobs)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *Watch) countOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, jetstreamWait)
	defer cancel()
	queue, err := w.js.Stream(ctx, subjects.JobsStream)
	var dead uint64
	if err == nil {
		dead, err = w.messages(ctx, subjects.DeadStream)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.jobs.failed = err != nil; err != nil {
		return
	}
	info := queue.CachedInfo()
	w.jobs.Jobs = Jobs{Waiting: new(info.State.Msgs), Dead: new(dead)}
	if info.State.Msgs > 0 {
		w.jobs.OldestMS = new(max(0, info.TimeStamp.Sub(info.State.FirstTime).Milliseconds())) // both by the server's clock
	}
}

func (w *Watch) messages(ctx context.Context, stream string) (uint64, error) {
	s, err := w.js.Stream(ctx, stream)
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().State.Msgs, nil
}
