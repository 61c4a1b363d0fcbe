package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/llmbus/llmbus/subjects"
)

// agent is one feature as others see it.
type agent struct {
	*Face
	feature string
	service micro.Service
	prompts map[string]string // metadata of the prompt endpoint
}

// show registers the feature's service.
func (f *Face) show(work context.Context, feature string) (*agent, error) {
	a := &agent{Face: f, feature: feature, prompts: map[string]string{
		"max_payload": size(f.cfg.Conn.MaxPayload()), "attachments_ok": "false",
	}}
	var err error
	a.service, err = micro.AddService(f.cfg.Conn, micro.Config{
		Name: subjects.AgentService, Version: f.cfg.Version, Description: "The feature " + feature + " of llmbus",
		QueueGroup: subjects.AgentQueue,
		Metadata: map[string]string{"agent": subjects.AgentKind, "owner": f.cfg.Owner, "session": feature,
			"protocol_version": subjects.AgentProtocol, "feature": feature},
	})
	if err != nil {
		return nil, fmt.Errorf("announcing the agent of %s: %w", feature, err)
	}
	prompt := func(req micro.Request) { a.take(work, req) }
	err = a.service.AddEndpoint("prompt", micro.HandlerFunc(prompt), micro.WithEndpointSubject(subjects.AgentPrompt(f.cfg.Owner, feature)), micro.WithEndpointMetadata(a.prompts))
	if err == nil {
		err = a.service.AddEndpoint("status", micro.HandlerFunc(a.status), micro.WithEndpointSubject(subjects.AgentStatus(f.cfg.Owner, feature)))
	}
	if err != nil {
		_ = a.service.Stop() // fails only with the connection
		return nil, fmt.Errorf("announcing the agent of %s: %w", feature, err)
	}
	return a, nil
}

func (a *agent) stop() error {
	if err := a.service.Stop(); err != nil && !a.cfg.Conn.IsClosed() {
		return fmt.Errorf("taking back the agent of %s: %w", a.feature, err)
	}
	return nil
}

// size writes bytes in the unit of the protocol that fits.
func size(bytes int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"MB", 1 << 20}, {"KB", 1 << 10}} {
		if bytes >= unit.bytes && bytes%unit.bytes == 0 {
			return strconv.FormatInt(bytes/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(bytes, 10) + "B"
}

// heartbeat is a sign of life, and the answer to a request for the status.
type heartbeat struct {
	Agent      string              `json:"agent"`
	Owner      string              `json:"owner"`
	Session    string              `json:"session"`
	InstanceID string              `json:"instance_id"` // the id of the service, as $SRV shows it
	Time       string              `json:"ts"`          // this worker's clock, UTC
	IntervalS  int                 `json:"interval_s"`
	Protocol   string              `json:"protocol_version"`
	Endpoints  map[string]endpoint `json:"endpoints"`
}

type endpoint struct {
	Subject  string            `json:"subject"`
	Metadata map[string]string `json:"metadata"`
}

func (a *agent) life() []byte {
	data, _ := json.Marshal(heartbeat{ // strings and numbers cannot fail
		Agent: subjects.AgentKind, Owner: a.cfg.Owner, Session: a.feature, InstanceID: a.service.Info().ID,
		Time: time.Now().UTC().Format(time.RFC3339), IntervalS: int(a.cfg.Heartbeat / time.Second), Protocol: subjects.AgentProtocol,
		Endpoints: map[string]endpoint{"prompt": {subjects.AgentPrompt(a.cfg.Owner, a.feature), a.prompts}},
	})
	return data
}

// beat gives a sign of life. While the connection is lost it is missed, which is
// what its absence is for.
func (a *agent) beat() {
	_ = a.cfg.Conn.Publish(subjects.AgentHeartbeat(a.cfg.Owner, a.feature), a.life())
}

func (a *agent) status(req micro.Request) {
	if a.cfg.Inboxes.Allowed(req.Reply()) {
		_ = req.Respond(a.life()) // fails only with the connection
	}
}
