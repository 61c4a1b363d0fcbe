package gateway

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
)

// asker asks in the name of tenants, over one connection.
type asker struct {
	conn      *nats.Conn
	admission time.Duration

	mu      sync.Mutex
	clients map[string]*client.Client
}

// of is the client of a tenant; of the empty one, that of a fleet without
// tenants. Tenants come from the list of keys, which bounds them.
func (a *asker) of(tenant string) (llm.Completer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.clients[tenant]; ok {
		return c, nil
	}
	options := []client.Option{client.WithAdmission(a.admission)}
	if tenant != "" {
		options = append(options, client.WithTenant(tenant))
	}
	c, err := client.New(a.conn, options...)
	if err != nil {
		return nil, err
	}
	if a.clients == nil {
		a.clients = make(map[string]*client.Client)
	}
	a.clients[tenant] = c
	return c, nil
}
