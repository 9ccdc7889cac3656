package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodestate"
	"github.com/gatehouse-registry/gatehouse/launchverify/runspool"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// nodeVariable names the folder of the node's state.
const nodeVariable = "GATEHOUSE_NODE"

// nodeFolder is where the state of this node lies: the flag, else GATEHOUSE_NODE, else for root nodestate.RootFolder and for
// anybody else a folder beside the credentials.
func (e *Env) nodeFolder(flag string) (string, error) {
	switch dir := e.Vars[nodeVariable]; {
	case flag != "":
		return flag, nil
	case dir != "":
		return dir, nil
	case os.Geteuid() == 0:
		return nodestate.RootFolder, nil
	}
	home, err := e.home()
	return filepath.Join(home, "node"), err
}

// node is this node as it joined a registry; the error wraps nodestate.ErrNotJoined when it did not.
func (e *Env) node(flag string) (*nodestate.State, error) {
	dir, err := e.nodeFolder(flag)
	if err != nil {
		return nil, err
	}
	return nodestate.Open(dir)
}

// nodeClient is a client that signs in as the node, and tries again for so long what the server was too busy for.
func nodeClient(n *nodestate.State, patience time.Duration) (*client.Client, error) {
	return client.New(client.Options{Server: n.Server, Token: n.Token, UserAgent: "gatehouse/" + Version, RetryFor: patience})
}

// nodeVerbs are the verbs of a machine that launches jobs.
func (a app) nodeVerbs() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "This machine as a node: join a registry, show, leave", Args: cobra.NoArgs}
	cmd.AddCommand(a.nodeJoin(), a.nodeShow(), a.nodeLeave())
	return cmd
}

func addNodeState(cmd *cobra.Command, into *string, name string) {
	cmd.Flags().StringVar(into, name, "", "the folder of the node's state (default $"+nodeVariable+", else "+nodestate.RootFolder+" for root, else node beside the credentials)")
}

func (a app) nodeJoin() *cobra.Command {
	var state, token string
	var newKey bool
	cmd := &cobra.Command{
		Use:   "join SERVER [--token TOKEN]",
		Short: "Let this machine say what it launched",
		Long: `Make a key for this machine and register its public half, so that every launch is told to the registry in a statement that the
key signs. The token is what sf admin node add printed; it is taken from --token, else from GATEHOUSE_TOKEN, else from the
first line of standard input. It reads nothing but the list of revoked versions and what the receipts of jobs name, and
writes nothing but runs.

Run it as root: then the key is root's alone, and a statement proves that root's agent made it. Of anybody else's key
the statements say that they are self-asserted. To join again takes another token and keeps the key; --new-key replaces the
key, and the registry goes on believing what the old one signed.`,
		Example: "  sf node join https://registry.example.org --token \"$TOKEN\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := a.env.nodeFolder(state)
			if err != nil {
				return err
			}
			secret, err := a.secret(token, "")
			if err != nil {
				return err
			}
			c, err := client.New(client.Options{Server: strings.TrimRight(args[0], "/"), Token: secret, UserAgent: "gatehouse/" + Version})
			if err != nil {
				return err
			}
			if !private(c.Server()) {
				fmt.Fprintf(a.env.Err, "sf node join: warning: %s is no https address: whoever sits in between gets the node's token\n", printable(c.Server()))
			}
			n, err := nodestate.Prepare(dir, newKey)
			if err != nil {
				return err
			}
			who, err := c.RegisterNodeKey(cmd.Context(), n.Public())
			if err != nil {
				return err
			}
			if err := elsewhere(n, who.Registry); err != nil {
				return err
			}
			if err := n.Join(nodestate.Identity{Server: c.Server(), Name: who.Node, Registry: who.Registry}, secret); err != nil {
				return err
			}
			return a.printNode(n)
		},
	}
	addNodeState(cmd, &state, "state")
	cmd.Flags().StringVar(&token, "token", "", "the node's token")
	cmd.Flags().BoolVar(&newKey, "new-key", false, "make another key in place of the one that is there")
	return cmd
}

// private reports whether nobody between here and a server reads what is sent there.
func private(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "https" {
		return err == nil
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// elsewhere refuses a registry for which the spool's statements are not meant: they would tell it of another one's jobs.
func elsewhere(n *nodestate.State, registryID string) error {
	spool, err := runspool.Open(n.Spool(), runspool.Limits{})
	if err != nil {
		return err
	}
	entries, err := spool.List()
	if err != nil {
		return err
	}
	for _, e := range entries {
		envelope, err := spool.Read(e)
		if err != nil {
			continue // sent meanwhile
		}
		s, err := runrecord.Read(envelope)
		if err == nil && s.Predicate.Registry != "" && s.Predicate.Registry != registryID {
			return registry.Errorf(registry.Conflict, "%s holds statements for registry %s, this is %s: send them there first, or remove them", n.Spool(), s.Predicate.Registry, registryID)
		}
	}
	return nil
}

func (a app) nodeShow() *cobra.Command {
	var state string
	var public bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show what this node is and what it still has to tell", Args: cobra.NoArgs,
		Long: `Show which registry this node joined, under which name, with which key, and how many statements wait to be sent. --public-key
prints the public half of the key alone, in PEM: any tool verifies the node's statements with it.`,
		RunE: func(*cobra.Command, []string) error {
			n, err := a.env.node(state)
			if err != nil {
				return err
			}
			if public {
				text, err := receipt.EncodeKey(n.Public())
				if err != nil {
					return err
				}
				_, err = a.env.Out.Write(text)
				return err
			}
			return a.printNode(n)
		},
	}
	addNodeState(cmd, &state, "state")
	cmd.Flags().BoolVar(&public, "public-key", false, "print the public key alone, in PEM")
	return cmd
}

func (a app) nodeLeave() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "leave", Short: "Forget the registry that this node joined", Args: cobra.NoArgs,
		Long: `Remove the node's token and key from this machine. What waits to be sent stays in the spool; send it first (sf runs send), since
nothing signed with the removed key is sent after another join under another name. The registry keeps the node until an
administrator deletes it.`,
		RunE: func(*cobra.Command, []string) error {
			n, err := a.env.node(state)
			if err != nil {
				return err
			}
			if err := n.Leave(); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"left": n.Server, "name": n.Name})
			}
			_, err = fmt.Fprintf(a.env.Out, "left %s\n", printable(n.Server))
			return err
		},
	}
	addNodeState(cmd, &state, "state")
	return cmd
}

// nodeView is what is shown of a node.
type nodeView struct {
	Server       string     `json:"server"`
	Name         string     `json:"name"`
	Registry     string     `json:"registry"`
	Key          string     `json:"key"`
	SelfAsserted bool       `json:"self_asserted"`
	Folder       string     `json:"folder"`
	Spool        spoolCount `json:"spool"`
}

type spoolCount struct {
	Waiting  int   `json:"waiting"`
	Rejected int   `json:"rejected"`
	Bytes    int64 `json:"bytes"`
}

// printNode shows a node.
func (a app) printNode(n *nodestate.State) error {
	spool, err := runspool.Open(n.Spool(), runspool.Limits{})
	if err != nil {
		return err
	}
	entries, err := spool.List()
	if err != nil {
		return err
	}
	view := nodeView{Server: n.Server, Name: n.Name, Registry: n.Registry, Key: n.KeyID, SelfAsserted: n.SelfAsserted, Folder: n.Folder()}
	for _, e := range entries {
		view.Spool.Bytes += e.Bytes
		if e.Refused {
			view.Spool.Rejected++
		} else {
			view.Spool.Waiting++
		}
	}
	if a.opt.json {
		return a.env.writeJSON(view)
	}
	whose := "root's alone"
	if n.SelfAsserted {
		whose = "not root's alone: its statements are self-asserted"
	}
	_, err = fmt.Fprintf(a.env.Out, "node %s of %s (registry %s)\nkey %s, %s\nstate in %s: %d statements wait to be sent, %d were rejected\n",
		printable(n.Name), printable(n.Server), printable(n.Registry), n.KeyID, whose, printable(n.Folder()), view.Spool.Waiting, view.Spool.Rejected)
	return err
}

// notJoined reports whether an error says that this machine is no node.
func notJoined(err error) bool { return errors.Is(err, nodestate.ErrNotJoined) }
