//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// wouldBlock reports whether a read of the socket would have to wait. What it
// reads otherwise is lost.
func wouldBlock(fd uintptr) bool {
	_, err := syscall.Read(int(fd), make([]byte, 1))
	return errors.Is(err, syscall.EAGAIN)
}
