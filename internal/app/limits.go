package app

import (
	"github.com/nats-io/nats.go/jetstream"

	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/kv"
	"github.com/llmbus/llmbus/limits"
)

func newLimiter(a *App, js jetstream.JetStream, slots *kv.Bucket, o kv.Options) (*limits.Limiter, error) {
	return limits.New(limits.Config{JetStream: js, Slots: slots, Options: o, Worker: a.name, Log: a.log})
}

// limitTenants puts the limits of a configuration in force. They were judged
// when it was read.
func (p *policy) limitTenants(cfg *config.Config) {
	if err := p.limiter.Load(cfg.Limits); err != nil {
		p.log.Error("limits are refused; those of before stay", "reason", err)
	}
	if env := p.adapters.env; cfg.Limits.NameTenants() && !env.Tenants && !env.TenantHeader {
		p.log.Warn("limits of tenants by name have no effect, since this worker knows no tenants; set LLMBUS_TENANTS or LLMBUS_TENANT_HEADER, or limit default")
	}
}
