package kv

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// List reads every key that a filter matches, such as "2026-11-30.>", in no
// order. It is for tools and pages: the keys are listed by the stream's leader
// and their values read from whichever replica is near, which may be a moment
// behind.
func (b *Bucket) List(ctx context.Context, filter string) ([]Entry, error) {
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.subject(filter)))
	if err != nil {
		return nil, fmt.Errorf("list %s in %s: %w", filter, b.name, err)
	}
	var entries []Entry
	for subjects := range slices.Chunk(slices.Collect(maps.Keys(info.State.Subjects)), keysPerRead) {
		_, err := b.values(ctx, subjects, func(u update) {
			if u.op == OpPut {
				entries = append(entries, u.Entry)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("read %s in %s: %w", filter, b.name, err)
		}
	}
	return entries, nil
}
