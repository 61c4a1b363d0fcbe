package page

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// calm is the shortest time between two views, however much changes.
const calm = 100 * time.Millisecond

// hub hands each view to all viewers.
type hub struct {
	most int
	wake chan struct{} // holds one wish to send at once

	mu      sync.Mutex
	viewers map[*viewer]struct{}
}

// viewer is one open page.
type viewer struct {
	next chan []byte // the newest view that was not sent yet
}

func newHub(most int) *hub {
	return &hub{most: most, wake: make(chan struct{}, 1), viewers: map[*viewer]struct{}{}}
}

func (h *hub) changed() {
	select {
	case h.wake <- struct{}{}:
	default: // somebody wished it already
	}
}

// join adds a viewer, who leaves by the function; nil if there are too many.
func (h *hub) join() (v *viewer, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.viewers) >= h.most {
		return nil, nil
	}
	v = &viewer{next: make(chan []byte, 1)}
	h.viewers[v] = struct{}{}
	h.changed() // so that there is something to see
	return v, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.viewers, v)
	}
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.viewers)
}

// run sends a view whenever it is time or something changed, and somebody looks.
func (h *hub) run(ctx context.Context, every time.Duration, view func() any) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-h.wake:
		case <-ctx.Done():
			return
		}
		if h.count() > 0 {
			h.send(frame("view", view()))
		}
		select {
		case <-time.After(min(calm, every)):
		case <-ctx.Done():
			return
		}
	}
}

// send gives each viewer the frame in place of an older one that waits.
func (h *hub) send(data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range h.viewers {
		select {
		case <-v.next:
		default:
		}
		v.next <- data // has room: only this function writes, under the lock
	}
}

// frame is one server-sent event. JSON has no line ends.
func frame(event string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte("null") // cannot be: a view is plain data
	}
	return bytes.Join([][]byte{[]byte("event: " + event + "\ndata: "), data, []byte("\n\n")}, nil)
}

// hello is what a page is told first.
type hello struct {
	Admin string `json:"admin"` // off: nobody can act here; locked: with the key; open: this viewer can
}

// events streams views until the viewer is gone or does not read.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	v, leave := p.hub.join()
	if v == nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "too many look at this page; try again later")
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not collect events
	say := hello{Admin: "locked"}
	switch {
	case p.cfg.Key == "":
		say.Admin = "off"
	case p.rights(r).act:
		say.Admin = "open"
	}
	out := http.NewResponseController(w)
	data := frame("hello", say)
	for {
		if out.SetWriteDeadline(time.Now().Add(p.cfg.WriteTimeout)) != nil {
			return
		}
		if _, err := w.Write(data); err != nil || out.Flush() != nil {
			return
		}
		select {
		case data = <-v.next:
		case <-r.Context().Done():
			return
		}
	}
}
