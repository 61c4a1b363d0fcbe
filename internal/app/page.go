package app

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/llmbus/llmbus/internal/fleet"
	"github.com/llmbus/llmbus/internal/page"
)

// addPage puts the operator's page beside the API of the door.
func (d *door) addPage() error {
	key, err := d.env.adminKey()
	if err != nil {
		return err
	}
	tcp, ok := d.listener.Addr().(*net.TCPAddr)
	d.adminKey = key != ""
	// The two need each other, and neither does before they run.
	d.fleet, err = fleet.New(fleet.Config{Conn: d.conn.Conn, OnChange: func() { d.page.Changed() }})
	if err != nil {
		return err
	}
	d.page, err = page.New(page.Config{Conn: d.conn.Conn, View: func() any { return d.fleet.View() }, Key: key,
		Local: ok && tcp.IP.IsLoopback(), Log: d.log})
	if err != nil {
		return err
	}
	d.server.Handle("/{$}", d.page)
	d.server.Handle("/page/", d.page)
	return nil
}

// describePage says where the page is, for the banner.
func (d *door) describePage() string {
	who := "read-only: LLMBUS_ADMIN_KEY is not set"
	if d.adminKey {
		who = "the admin key flips switches"
	}
	return fmt.Sprintf("http://%s/ (%s)", d.listener.Addr(), who)
}

// adminKey is the key of the page, empty for none.
func (e *Environment) adminKey() (string, error) {
	if e.AdminKeyFile == "" {
		return e.AdminKey.Reveal(), nil
	}
	text, err := os.ReadFile(e.AdminKeyFile)
	if err != nil {
		return "", fmt.Errorf("LLMBUS_ADMIN_KEY_FILE: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); len(line) < page.MinKey {
		return "", fmt.Errorf("LLMBUS_ADMIN_KEY_FILE: the first line of %s must have at least %d characters", e.AdminKeyFile, page.MinKey)
	}
	return line, nil
}

// refusePage refuses what cannot apply of the page.
func (e *Environment) refusePage(refuse func(when bool, format string, args ...any)) {
	refuse(e.AdminKey != "" && e.AdminKeyFile != "", "ADMIN_KEY_FILE: cannot be set together with LLMBUS_ADMIN_KEY; keep one")
	refuse(e.AdminKey != "" && len(e.AdminKey) < page.MinKey, "ADMIN_KEY: must have at least %d characters", page.MinKey)
}
