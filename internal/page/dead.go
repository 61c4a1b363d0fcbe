package page

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/jobs"
)

func (p *Page) streams(ctx context.Context) (*jobs.Streams, error) {
	b, err := p.buckets(ctx)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(p.cfg.Conn)
	if err != nil {
		return nil, err
	}
	return jobs.Bind(ctx, js, b.Jobs)
}

// name tells jobs apart.
type name struct {
	ID      string `json:"id"`
	Feature string `json:"feature"`
	Tenant  string `json:"tenant,omitempty"`
}

// letter is one dead letter as the page shows it.
type letter struct {
	name
	Code      string    `json:"code"`
	Message   string    `json:"message"`
	Tries     int       `json:"tries"`
	Attempts  int       `json:"attempts"` // calls of providers
	Replay    int       `json:"replay,omitempty"`
	Published time.Time `json:"published"`
	Died      time.Time `json:"died"`
}

func (p *Page) listDead(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	list := []letter{}
	s, err := p.streams(ctx)
	if err == nil {
		for d, failed := range s.Dead(ctx, jobs.Of{}) {
			if err = failed; err != nil || len(list) == mostDead {
				break
			}
			list = append(list, letter{name: name{d.ID, d.Feature, d.Tenant}, Code: string(d.Error.Code), Message: d.Error.Message, Tries: d.Tries + d.Waits,
				Attempts: len(d.Attempts) + d.Omitted, Replay: d.Replay, Published: d.Published, Died: d.Died})
		}
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, list)
}

// replaying is what /page/replay takes.
type replaying struct {
	Jobs []name `json:"jobs"`
	All  bool   `json:"all"`
}

// outcome is how far a replay came.
type outcome struct {
	Replayed int    `json:"replayed"`
	Failed   int    `json:"failed"`          // letters that hold no request
	Error    string `json:"error,omitempty"` // why it did not come to the end
}

func (p *Page) replay(w http.ResponseWriter, r *http.Request) {
	var wanted replaying
	if !read(w, r, &wanted) {
		return
	}
	if wanted.All == (len(wanted.Jobs) > 0) {
		refuse(w, http.StatusBadRequest, "name jobs, or all")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), replayed)
	defer cancel()
	s, err := p.streams(ctx)
	var done outcome
	if err == nil {
		done, err = replayLetters(ctx, s, wanted)
	}
	p.log.Info("jobs were replayed on the page", "replayed", done.Replayed, "failed", done.Failed, "error", err)
	if err != nil {
		done.Error = err.Error()
		answer(w, http.StatusServiceUnavailable, done)
		return
	}
	answer(w, http.StatusOK, done)
}

func replayLetters(ctx context.Context, s *jobs.Streams, wanted replaying) (done outcome, err error) {
	named := map[name]bool{}
	for _, j := range wanted.Jobs {
		named[j] = true
	}
	for d, err := range s.Dead(ctx, jobs.Of{}) {
		if err != nil {
			return done, err
		}
		if !wanted.All && !named[name{d.ID, d.Feature, d.Tenant}] {
			continue
		}
		switch err := s.Replay(ctx, d); {
		case errors.Is(err, jobs.ErrNoRequest):
			done.Failed++
		case err != nil:
			return done, err
		default:
			done.Replayed++
		}
	}
	return done, nil
}
