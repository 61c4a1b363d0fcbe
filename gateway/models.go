package gateway

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/llmbus/llmbus/llm"
)

// model is a feature as the API lists it.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type modelList struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

func (s *Server) model(name string) model { return model{name, "model", s.since.Unix(), "llmbus"} }

func (s *Server) listModels(w http.ResponseWriter, r *http.Request, _ string) {
	names, err := s.fleet.known(r.Context())
	if err != nil {
		noWorker().write(w)
		return
	}
	list := modelList{"list", make([]model, 0, len(names))}
	for _, name := range names {
		list.Data = append(list.Data, s.model(name))
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) showModel(w http.ResponseWriter, r *http.Request, _ string) {
	names, err := s.fleet.known(r.Context())
	switch name := r.PathValue("id"); {
	case err != nil:
		noWorker().write(w)
	case !slices.Contains(names, name):
		problemOf(noModel(name)).write(w)
	default:
		writeJSON(w, http.StatusOK, s.model(name))
	}
}

func noModel(name string) error {
	return llm.Errorf(llm.CodeUnknownFeature, "the model %.80q is no feature of this fleet; GET /v1/models lists them", name)
}

func noWorker() problem {
	return problemOf(llm.Errorf(llm.CodeUnavailable, "no worker answers"))
}

// health is what the two checks answer.
type health struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// healthz says that this process serves.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, health{Status: "ok"})
}

// readyz says whether a request would reach a worker.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	switch {
	case !s.cfg.Conn.IsConnected():
		writeJSON(w, http.StatusServiceUnavailable, health{"unavailable", "there is no connection to NATS"})
	default:
		if _, err := s.fleet.known(r.Context()); err != nil {
			writeJSON(w, http.StatusServiceUnavailable, health{"unavailable", "no worker answers"})
			return
		}
		writeJSON(w, http.StatusOK, health{Status: "ok"})
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		problemOf(err).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // fails only when the caller is gone
}
