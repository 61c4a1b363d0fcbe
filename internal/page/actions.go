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
