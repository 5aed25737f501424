package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script that completes the command line in a shell.
func (c completionCmd) Run(k *kong.Context, e *env) error {
	switch c.Shell {
	case "fish":
		return writeFish(e.out, k.Model.Node)
	case "zsh":
		fmt.Fprintln(e.out, "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit")
	}
	return writeBash(e.out, k.Model.Node)
}

// walkCommands calls do for each command below a node, with its path without the program's name.
func walkCommands(n *kong.Node, path string, do func(n *kong.Node, path string)) {
	do(n, path)
	for _, child := range n.Children {
		if !child.Hidden {
			walkCommands(child, strings.TrimSpace(path+" "+child.Name), do)
		}
	}
}

// flags returns the flags of a command and of the commands above it.
func flags(n *kong.Node) (all []*kong.Flag) {
	for _, group := range n.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// writeBash prints a script in which each command is one row of a case statement.
func writeBash(out io.Writer, root *kong.Node) error {
	var paths, words, values strings.Builder
	seen := map[string]bool{}
	walkCommands(root, "", func(n *kong.Node, path string) {
		if path != "" {
			fmt.Fprintf(&paths, "%q|", path)
		}
		var all []string
		for _, child := range n.Children {
			all = append(all, child.Name)
		}
		for _, f := range flags(n) {
			all = append(all, "--"+f.Name)
			if row := path + " --" + f.Name; f.Enum != "" && !seen[row] {
				seen[row] = true
				fmt.Fprintf(&values, "    %q) words=%q ;;\n", row, strings.ReplaceAll(strings.Trim(f.Enum, ","), ",", " "))
			}
		}
		fmt.Fprintf(&words, "    %q) words=%q ;;\n", path, strings.Join(all, " "))
	})
	_, err := fmt.Fprintf(out, `# Completion of parley for bash: source <(parley completion bash)
_parley() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word words=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "${path:+$path }$word" in
    %s) path="${path:+$path }$word" ;;
    esac
  done
  case "$path" in
%s  esac
  case "$path $previous" in
%s  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _parley parley
`, strings.TrimSuffix(paths.String(), "|"), words.String(), values.String())
	return err
}

// writeFish prints a line for each command and flag, with its help.
func writeFish(out io.Writer, root *kong.Node) error {
	quote := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
	}
	lines := []string{
		"# Completion of parley for fish: parley completion fish | source",
		"function __parley_at",
		"  set -l words (commandline -opc)[2..-1]",
		"  string match -q -- \"$argv[1]\" (string join ' ' -- (string match -v -- '-*' $words))",
		"end",
	}
	walkCommands(root, "", func(n *kong.Node, path string) {
		for _, child := range n.Children {
			lines = append(lines, fmt.Sprintf("complete -c parley -f -n \"__parley_at %s\" -a %s -d %s", quote(path), child.Name, quote(child.Help)))
		}
		for _, f := range flags(n) {
			line := fmt.Sprintf("complete -c parley -n \"__parley_at %s\" -l %s -d %s", quote(path+"*"), f.Name, quote(f.Help))
			switch {
			case f.Enum != "":
				line += " -x -a " + quote(strings.ReplaceAll(strings.Trim(f.Enum, ","), ",", " "))
			case !f.IsBool():
				line += " -r"
			}
			lines = append(lines, line)
		}
	})
	_, err := fmt.Fprintln(out, strings.Join(slices.Compact(lines), "\n"))
	return err
}
