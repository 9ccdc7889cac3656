package cli

import (
	"context"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// launchSignIn signs a launch in, to fetch what its receipt names: as the node that this machine is, which gets a grant for the
// receipt, and reads nothing else with it; or where it is none, as who is signed in here.
type launchSignIn struct {
	app       app
	nodeState string // the folder of the node's state, "" for the usual one
	envelope  []byte // of the receipt, once it was verified

	person  *client.Client // signed in as who is signed in here, nil before
	node    *client.Client // signed in as the node, nil before
	granted *client.Client
	until   time.Time // by this machine's own monotonic clock, when another grant is asked for
}

// verified is launchverify.Options.Verified.
func (s *launchSignIn) verified(envelope []byte) { s.envelope = envelope }

// client may read what the receipt names. Errors: of the registry, which may refuse the grant.
func (s *launchSignIn) client(ctx context.Context) (*client.Client, error) {
	if s.granted != nil && time.Now().Before(s.until) {
		return s.granted, nil
	}
	if s.person != nil {
		return s.person, nil
	}
	if s.node == nil {
		err := s.asNode()
		if err == nil && s.node == nil {
			s.person, err = s.app.env.ociClient(ctx)
			if s.envelope == nil || registry.CodeOf(err) != registry.Denied {
				return s.person, err
			}
			err = s.byNodeToken()
		}
		if err != nil {
			return nil, err
		}
	}
	asked := time.Now()
	g, err := s.node.NodeGrant(ctx, s.envelope)
	if err != nil {
		return nil, err
	}
	s.granted, s.until = s.node.WithGrant(g.Token), asked.Add(time.Duration(g.ExpiresIn)*time.Second/2)
	return s.granted, nil
}

// byNodeToken takes the token of GATEHOUSE_TOKEN for a node's: who may not even ask who it is. In a container the token is
// all that there is of the node.
func (s *launchSignIn) byNodeToken() error {
	patience, err := s.app.env.patience()
	if err != nil {
		return err
	}
	s.node, _, err = s.app.env.patientClient(patience)
	return err
}

// asNode signs in as the node, where this machine joined the registry that the receipt is of.
func (s *launchSignIn) asNode() error {
	if s.envelope == nil {
		return nil
	}
	n, err := s.app.env.node(s.nodeState)
	if notJoined(err) && s.nodeState == "" {
		return nil
	}
	if err != nil {
		return err
	}
	payload, err := receipt.Peek(s.envelope, receipt.PayloadType, receipt.MaxEnvelope)
	if err != nil {
		return err
	}
	r, err := receipt.Parse(payload)
	if err != nil || n.Registry != "" && n.Registry != r.Audience {
		return err
	}
	patience, err := s.app.env.patience()
	if err != nil {
		return err
	}
	s.node, err = nodeClient(n, patience)
	return err
}
