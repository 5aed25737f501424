package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func model(t *testing.T) *kong.Node {
	t.Helper()
	var out bytes.Buffer
	parser, err := (&env{Context: t.Context(), out: &out, errs: &out}).parser(&commands{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Node
}

func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var out bytes.Buffer
	if code := run(&env{Context: t.Context(), out: &out, errs: &out}, []string{"completion", shell}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	return out.String()
}

// TestCompletion completes command lines in bash.
func TestCompletion(t *testing.T) {
	script := completionScript(t, "bash")
	for line, want := range map[string]string{
		"parley ser":                           "serve",
		"parley key ":                          "create list set revoke",
		"parley --config x key cr":             "create",
		"parley operator create --org a --rol": "--role",
		"parley operator create --role o":      "operator owner",
		"parley completion --he":               "--help",
		"parley campaign pau":                  "pause",
	} {
		words := strings.Split(line, " ")
		cmd := exec.CommandContext(t.Context(), "bash", "-c", script+"\nCOMP_WORDS=(\"$@\"); COMP_CWORD=$(($#-1)); _parley; echo \"${COMPREPLY[@]}\"", "bash")
		cmd.Args = append(cmd.Args, words...)
		got, err := cmd.CombinedOutput()
		complete := strings.Fields(string(got))
		for word := range strings.FieldsSeq(want) {
			if err != nil || !slices.Contains(complete, word) {
				t.Errorf("%q: %s, %v; want %s", line, got, err, want)
			}
		}
		if strings.HasSuffix(want, "owner") && len(complete) != 2 {
			t.Errorf("%q: %s", line, got)
		}
	}
	for shell, check := range map[string][]string{"zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}} {
		text := completionScript(t, shell)
		if !strings.Contains(text, "parley") {
			t.Errorf("%s: %s", shell, text)
		}
		if _, err := exec.LookPath(check[0]); err != nil {
			continue // the shell is not installed
		}
		if got, err := exec.CommandContext(t.Context(), check[0], check[1], writeFile(t, "script", text)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, got)
		}
	}
}

// TestExamples checks that the examples name existing commands and flags, and that each command is in a group.
func TestExamples(t *testing.T) {
	known := map[string]*kong.Node{}
	walkCommands(model(t), "", func(n *kong.Node, path string) { known[path] = n })
	for path, lines := range examples {
		n := known[path]
		if n == nil {
			t.Errorf("examples of %q, which is no command", path)
			continue
		}
		for _, line := range lines {
			if path != "" && !strings.Contains(line, "parley "+path) {
				t.Errorf("%q is no example of %s", line, path)
			}
			for word := range strings.FieldsSeq(line) {
				flag, isFlag := strings.CutPrefix(word, "--")
				if isFlag && path != "" && !slices.ContainsFunc(flags(n), func(f *kong.Flag) bool { return f.Name == flag }) {
					t.Errorf("%q: no flag --%s", line, flag)
				}
			}
		}
	}
	for _, n := range known[""].Children {
		if n.Group == nil {
			t.Errorf("%s is in no group of the help", n.Name)
		}
	}
}
