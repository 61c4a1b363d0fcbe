package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/jobs"
	"github.com/llmbus/llmbus/kv"
)

const (
	maxBody  = 64 << 10
	patience = 10 * time.Second // for NATS
	replayed = 30 * time.Second // for a replay, which may be of many jobs
	mostDead = 50               // letters that are listed
	mostText = 500              // bytes of a reason
	toClear  = "clear"
)

// flipping is what /page/switch takes.
type flipping struct {
	Flag   string `json:"flag"` // key in the llm_flags bucket
	To     string `json:"to"`   // on, off, off now, or clear
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// flag is what to write, or to remove if the flag is to be cleared.
func (f *flipping) flag() (kv.Flag, error) {
	flag := kv.Flag{Key: f.Flag, By: cmp.Or(f.By, "page"), Reason: strings.Join(strings.Fields(f.Reason), " ")}
	switch f.To {
	case "on":
		flag.On = true
	case "off now":
		flag.Now = true
	case "off":
	case toClear:
		return flag, nil
	default:
		return flag, fmt.Errorf("to: must be on, off, off now or clear, not %.20q", f.To)
	}
	switch {
	case flag.Reason == "":
		return flag, errors.New("reason: say why, for those who find the switch")
	case len(flag.Reason)+len(flag.By) > mostText:
		return flag, fmt.Errorf("reason: must be at most %d bytes", mostText)
	}
	return flag, flag.Validate()
}

func (p *Page) flip(w http.ResponseWriter, r *http.Request) {
	var f flipping
	if !read(w, r, &f) {
		return
	}
	flag, err := f.flag()
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	b, err := p.buckets(ctx)
	if err == nil && f.To == toClear {
		err = kv.ClearFlag(ctx, b.Flags, flag.Key)
	} else if err == nil {
		_, err = kv.SetFlag(ctx, b.Flags, flag)
	}
	switch {
	case errors.Is(err, jetstream.ErrInvalidKey):
		refuse(w, http.StatusBadRequest, fmt.Sprintf("flag: %.200q can be no key", f.Flag))
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		p.log.Info("a switch was flipped on the page", "flag", flag.Key, "to", f.To, "by", flag.By)
		answer(w, http.StatusOK, struct{}{})
	}
}

func (p *Page) buckets(ctx context.Context) (*kv.Buckets, error) {
	js, err := jetstream.New(p.cfg.Conn)
	if err != nil {
		return nil, err
	}
	return kv.Bind(ctx, js)
}

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

// read decodes a body that only a script of this page can have sent: a form of
// another site cannot say that it is JSON.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json")
		return false
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "the body is not what is asked for: "+err.Error())
		return false
	}
	return true
}
