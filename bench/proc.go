package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuTime is what the processes have used so far, in user and in system mode.
func cpuTime(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the name before it may hold anything
		fields := strings.Fields(rest)
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(n) * tick
		}
	}
	return sum, nil
}

// forgetPeak begins the peaks anew.
func forgetPeak(pids []int) (err error) {
	for _, pid := range pids {
		err = errors.Join(err, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0))
	}
	return err
}

// peak is the most memory that the processes held together, in KiB.
func peak(pids []int) (kib float64, err error) {
	for _, pid := range pids {
		n, err := status(pid, "VmHWM:")
		if err != nil {
			return 0, err
		}
		kib += n
	}
	return kib, nil
}

// resident is the memory of a process now, in KiB.
func resident(pid int) (float64, error) { return status(pid, "VmRSS:") }

func status(pid int, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), field)
	if !found {
		return 0, fmt.Errorf("process %d has no %s", pid, field)
	}
	return strconv.ParseFloat(strings.Fields(rest)[0], 64)
}
