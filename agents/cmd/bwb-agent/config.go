// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const defaultListen = "0.0.0.0:7411"

// withConfig adds --config: a TOML file whose keys are the names of the command's flags. A flag on the command line
// wins over the file.
func withConfig(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("config", "", "TOML `file` with the names of these flags as keys; flags win")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if file, _ := cmd.Flags().GetString("config"); file != "" {
			if err := applyConfig(cmd.Flags(), file); err != nil {
				return err
			}
		}
		return run(cmd, args)
	}
	return cmd
}

func applyConfig(flags *pflag.FlagSet, file string) error {
	var values map[string]any
	if _, err := toml.DecodeFile(file, &values); err != nil {
		return fmt.Errorf("config %s: %w", file, err)
	}
	for name, value := range values {
		flag := flags.Lookup(name)
		if flag == nil || name == "config" || name == "help" {
			return fmt.Errorf("config %s: unknown key %q", file, name)
		}
		if flag.Changed {
			continue
		}
		if err := flags.Set(name, flagText(value)); err != nil {
			return fmt.Errorf("config %s: %s: %w", file, name, err)
		}
	}
	return nil
}

// flagText is what stands on a command line for a value; the items of a list are parted by commas.
func flagText(value any) string {
	list, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = fmt.Sprint(item)
	}
	return strings.Join(items, ",")
}

// enrolmentToken finds the one-time token. It is never a flag: a command line is for everybody on the host to read.
func enrolmentToken(file, variable string) (string, error) {
	switch {
	case file != "" && variable != "":
		return "", fmt.Errorf("give --token-file or --token-env, not both")
	case file == "-":
		raw, err := io.ReadAll(io.LimitReader(os.Stdin, 4096))
		return strings.TrimSpace(string(raw)), err
	case file != "":
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		return strings.TrimSpace(string(raw)), nil
	case variable != "":
		if token := strings.TrimSpace(os.Getenv(variable)); token != "" {
			return token, nil
		}
		return "", fmt.Errorf("--token-env: %s is not set", variable)
	}
	return strings.TrimSpace(os.Getenv("BWB_ENROLMENT_TOKEN")), nil
}

func logger(w io.Writer, level string, json bool) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	if json {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}
