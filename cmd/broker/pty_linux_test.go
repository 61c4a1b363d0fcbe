package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/internal/natstest"
)

// pty opens a terminal of a size: ours is what a person sees and types at,
// theirs is what a program runs on.
func pty(t *testing.T, rows, columns uint16) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = ours.Close() })
	control := func(request uintptr, value unsafe.Pointer) {
		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, ours.Fd(), request, uintptr(value))
		require.Zero(t, failed)
	}
	var number, locked int32
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	size := [4]uint16{rows, columns}
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

// onTerminal runs top on a terminal until it has drawn twice, interrupts it, and
// returns all that it wrote.
func onTerminal(t *testing.T, env []string, rows, columns uint16) string {
	t.Helper()
	ours, theirs := pty(t, rows, columns)
	cmd := prepare(t, env, []string{"top", "--interval", "100ms"})
	cmd.Stdout, cmd.Stderr = theirs, theirs
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var text strings.Builder
	buf, told := make([]byte, 4096), false
	for {
		n, err := ours.Read(buf)
		text.Write(buf[:n])
		if !told && strings.Count(text.String(), home) >= 3 {
			told = true
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) { // the program has closed its end
			break
		}
		require.NoError(t, err)
	}
	err := cmd.Wait()
	if e, failed := errors.AsType[*exec.ExitError](err); failed {
		require.Equal(t, exitOK, e.ExitCode(), text.String())
	}
	return text.String()
}

func TestTopOnATerminal(t *testing.T) {
	env := []string{"LLMBUS_NATS_URL=" + natstest.ListenServer(t).ClientURL(), "TERM=xterm"}
	text := onTerminal(t, env, 6, 50)
	require.True(t, strings.HasPrefix(text, enterScreen), "%q", text)
	require.True(t, strings.HasSuffix(text, leaveScreen), "it gives the screen back, with the cursor")
	require.Contains(t, text, "\x1b["+string(red)+"m! no worker answers", "colours")
	first := strings.Split(text, home)[1]
	require.LessOrEqual(t, strings.Count(first, "\n"), 6, "no more lines than the terminal has")

	plain := onTerminal(t, append(env, "NO_COLOR=1"), 24, 80)
	require.Contains(t, plain, home, "it refreshes in place")
	require.NotContains(t, plain, "m! no worker")

	dumb := func() string {
		ours, theirs := pty(t, 24, 80)
		cmd := prepare(t, append(env, "TERM=dumb"), []string{"top", "--interval", "100ms"})
		cmd.Stdout = theirs
		require.NoError(t, cmd.Run(), "it prints once and ends")
		require.NoError(t, theirs.Close())
		text, err := io.ReadAll(ours)
		require.ErrorIs(t, err, syscall.EIO) // the end of a terminal
		return string(text)
	}()
	require.NotContains(t, dumb, "\x1b")
	require.Contains(t, dumb, "! no worker answers")
}
