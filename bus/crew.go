package bus

import (
	"sync"
	"sync/atomic"
)

// crew runs tasks on goroutines of which some stay for the next task: their
// stacks have grown already, and growing one costs as much as a good part of a
// request. It bounds nothing; slots do.
type crew struct {
	next    chan func()   // a member that waits takes it at once
	quit    chan struct{} // ends those that wait
	waiting atomic.Int64
	members sync.WaitGroup
}

// stayers is how many members may wait. Each holds a stack.
const stayers = 128

func newCrew() *crew { return &crew{next: make(chan func()), quit: make(chan struct{})} }

// run starts the task on a goroutine and returns.
func (c *crew) run(task func()) {
	select {
	case c.next <- task:
	default:
		c.members.Go(func() { c.work(task) })
	}
}

// work does a task, and others as long as there is room to wait for them.
func (c *crew) work(task func()) {
	for {
		task()
		task = nil // nothing of a request stays in memory
		if c.waiting.Add(1) > stayers {
			c.waiting.Add(-1)
			return
		}
		select {
		case task = <-c.next:
			c.waiting.Add(-1)
		case <-c.quit:
			return
		}
	}
}

// end ends the members that wait, and those that work after their task. run must
// not be called any more.
func (c *crew) end() { close(c.quit) }
