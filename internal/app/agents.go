package app

import (
	"context"
	"errors"

	"github.com/llmbus/llmbus/agents"
	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/subjects"
)

// newAgents makes the part that shows features as agents until its context ends,
// if that was asked for. It is a caller like any other, on a connection of its
// own, so that any worker may answer.
func (w *worker) newAgents() (run func(context.Context) error, err error) {
	if w.env.Agents == "" {
		return func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, nil
	}
	conn, err := w.env.connect(w.conn.url, "llmbus agents "+w.name, w.log)
	if err != nil {
		return nil, err
	}
	face, err := w.newFace(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	w.agents.Store(face)
	w.announce()
	return func(ctx context.Context) error {
		lost := func(ctx context.Context) error {
			select {
			case <-conn.closed:
				return conn.lost()
			case <-ctx.Done():
				return nil
			}
		}
		return errors.Join(together(ctx, face.Run, lost), conn.end())
	}, nil
}

func (w *worker) newFace(conn *connection) (*agents.Face, error) {
	c, err := client.New(conn.Conn, client.WithTimeout(w.env.MaxTimeout))
	if err != nil {
		return nil, err
	}
	return agents.New(agents.Config{Conn: conn.Conn, Completer: c, Owner: w.env.Agents, Version: w.opts.Version, Inboxes: w.env.inboxes(),
		MaxTimeout: w.env.MaxTimeout, Grace: w.env.ShutdownGrace, Log: w.log})
}

// announce says which features there are, after they may have changed.
func (w *worker) announce() {
	if face := w.agents.Load(); face != nil {
		face.Announce(w.router.Features())
	}
}

func (e *Environment) refuseAgents(refuse func(bool, string, ...any)) {
	refuse(e.Agents != "" && !subjects.ValidAgentOwner(e.Agents), "AGENTS: must be the owner of the agents, %s, not %q", subjects.AgentOwnerRule, e.Agents)
	refuse(e.Agents != "" && e.Tenants, "AGENTS: cannot be set together with LLMBUS_TENANTS, since a prompt to an agent names no tenant")
}
