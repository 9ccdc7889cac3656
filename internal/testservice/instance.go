package testservice

import (
	"context"
	"errors"
	"os"
)

// instance is a server with its folder and its port, which both outlast a stop.
type instance struct {
	folder  *folder
	port    string  // "" until the first start
	running *server // nil: it does not run

	launch func() (*server, error)     // starts the program on the port
	ask    func(context.Context) error // succeeds once the server answers
}

// Start starts the server after a Stop, on the same port.
func (i *instance) Start() error {
	if i.running != nil {
		return errors.New("the server runs")
	}
	var err error
	if i.port == "" {
		if i.port, err = freePort(); err != nil {
			return err
		}
	}
	running, err := i.launch()
	if err != nil {
		return err
	}
	if err := running.ready(i.ask); err != nil {
		return err
	}
	i.running = running
	return nil
}

// Stop ends the server as a crash of it would: at once, its connections cut. What it acknowledged is there after a Start.
func (i *instance) Stop() error {
	if i.running == nil {
		return errors.New("the server does not run")
	}
	err := i.running.stop()
	i.running = nil
	return err
}

// Close ends the server and removes what it kept.
func (i *instance) Close() error {
	var err error
	if i.running != nil {
		err = i.Stop()
	}
	return errors.Join(err, os.RemoveAll(i.folder.path), i.folder.lock.Close())
}
