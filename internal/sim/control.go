package sim

import (
	"encoding/json"
	"net/http"
	"time"
)

// wireRule is a Rule as /control speaks it: its time is text, such as "30s".
type wireRule struct {
	Fault    string `json:"fault"`
	For      string `json:"for,omitempty"`
	Times    int    `json:"times,omitempty"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

func (w wireRule) rule() (Rule, error) {
	rule := Rule{Fault: w.Fault, Times: w.Times, Provider: w.Provider, Model: w.Model}
	if w.For == "" {
		return rule, nil
	}
	var err error
	rule.For, err = duration(w.For)
	return rule, err
}

func (s *Server) addRule(w http.ResponseWriter, r *http.Request) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	decoder.DisallowUnknownFields() // a misspelt filter would hit every call
	var wire wireRule
	if err := decoder.Decode(&wire); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	rule, err := wire.rule()
	if err == nil {
		w.Header().Set("Connection", "close") // else a time down would leave this connection open
		spare, _ := r.Context().Value(connKey{}).(*conn)
		err = s.control(rule, spare)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.listRules(w, r)
}

func (s *Server) listRules(w http.ResponseWriter, _ *http.Request) {
	list := []wireRule{}
	for _, rule := range s.rules.inForce(time.Now()) {
		wire := wireRule{Fault: rule.Fault, Times: rule.Times, Provider: rule.Provider, Model: rule.Model}
		if rule.For > 0 {
			wire.For = rule.For.Round(time.Millisecond).String()
		}
		list = append(list, wire)
	}
	writeJSON(w, list)
}

func (s *Server) clearRules(w http.ResponseWriter, _ *http.Request) {
	s.Clear()
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) showStats(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.Stats()) }

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(v) // fails only when the client is gone
}
