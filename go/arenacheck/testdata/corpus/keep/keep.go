// Package keep has functions of another package that keep what they are given, and some that do not.
package keep

import "strings"

type Cache struct {
	entries map[string]string
	last    *string
}

func (c *Cache) Add(key, value string) { c.entries[key] = value }

func (c *Cache) AddCopy(key, value string) { c.entries[strings.Clone(key)] = strings.Clone(value) }

func (c *Cache) Note(s *string) *Cache {
	c.last = s
	return c
}

var names []string

func Register(name string) { names = append(names, name) }

func Count(s string) int { return strings.Count(s, " ") }

func First(s []string) string { return s[0] }

type Node struct {
	Next *Node
	Name string
}

func (n *Node) Link(next *Node) *Node {
	n.Next = next
	return n
}

type Keeper interface{ Keep(*Node) }
