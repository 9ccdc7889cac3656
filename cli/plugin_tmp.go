package cli

import "github.com/spf13/cobra"

func (a app) plugin() *cobra.Command { return &cobra.Command{Use: "plugin"} }
func (a app) launch() *cobra.Command { return &cobra.Command{Use: "launch"} }
