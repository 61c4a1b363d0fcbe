package bus

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"github.com/llmbus/llmbus/schemas"
	"github.com/llmbus/llmbus/subjects"
)

const serviceName = "llmbus"

// Report is what the status endpoint answers.
type Report struct {
	Worker  string `json:"worker"` // the id of the service instance, as $SRV shows it
	Version string `json:"version"`
	State   State  `json:"state"`
	Stats   Stats  `json:"stats"`
	Details any    `json:"details,omitempty"` // from Config.Status
}

// announce registers the worker as a NATS micro service, for discovery and
// statistics. Requests do not go through it.
func (w *Worker) announce() (micro.Service, error) {
	service, err := micro.AddService(w.cfg.Conn, micro.Config{
		Name: serviceName, Version: w.cfg.Version, Description: "LLM request/reply broker",
		QueueGroupDisabled: true,
		StatsHandler:       func(*micro.Endpoint) any { return w.Stats() },
		Metadata: map[string]string{
			"request_subject": subjects.Requests, "queue": subjects.Queue, "features": strings.Join(w.cfg.Features, ","),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("announcing the service: %w", err)
	}
	status := func(req micro.Request) {
		if w.cfg.Inboxes.Allowed(req.Reply()) {
			_ = req.RespondJSON(w.report(service.Info().ID)) // fails only with the connection
		}
	}
	err = service.AddEndpoint("status", micro.HandlerFunc(status), micro.WithEndpointSubject(subjects.Status),
		micro.WithEndpointQueueGroupDisabled(), micro.WithEndpointMetadata(schemas.Metadata()))
	if err != nil {
		_ = service.Stop()
		return nil, fmt.Errorf("announcing the status endpoint: %w", err)
	}
	return service, nil
}

func (w *Worker) report(id string) Report {
	r := Report{Worker: id, Version: w.cfg.Version, State: w.State(), Stats: w.Stats()}
	if w.cfg.Status != nil {
		r.Details = w.cfg.Status()
	}
	return r
}
