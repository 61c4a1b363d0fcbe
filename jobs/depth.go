package jobs

import (
	"context"
	"errors"
	"fmt"
)

// Depth counts the jobs of the fleet.
type Depth struct {
	Pending int64 // in the queue, those in hand included
	InHand  int64 // that workers have, or have put off
	Dead    int64 // dead letters
}

// Depth asks the streams, which must come from Open.
func (s *Streams) Depth(ctx context.Context) (Depth, error) {
	queue, err := s.queue.Info(ctx)
	dead, deadErr := s.dead.Info(ctx)
	consumer, consumerErr := s.consumer.Info(ctx)
	if err := errors.Join(err, deadErr, consumerErr); err != nil {
		return Depth{}, fmt.Errorf("count jobs: %w", err)
	}
	return Depth{Pending: int64(queue.State.Msgs), InHand: int64(consumer.NumAckPending), Dead: int64(dead.State.Msgs)}, nil
}
