package bus

import "context"

// changeServer goes to another server before this one closes the connection,
// since what it has sent by then and the client has not read is lost. Requests
// under way go on; what they publish while there is no connection is sent once
// there is one.
func (w *Worker) changeServer(work context.Context) error {
	w.log.Info("the NATS server is about to leave: going to another")
	ctx, cancel := context.WithTimeout(work, lastWord)
	defer cancel()
	joined := w.group
	w.leave()
	for _, m := range joined {
		select {
		case <-m.ended:
		case <-ctx.Done():
		}
	}
	_ = w.cfg.Conn.FlushWithContext(ctx) // answers so far; should it fail, the connection is gone already
	_ = w.cfg.Conn.ForceReconnect()      // fails only if closed for good, and then joining tells
	if joined == nil {                   // away, since full
		return nil
	}
	return w.join(work)
}
