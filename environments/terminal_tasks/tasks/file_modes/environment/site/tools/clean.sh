#!/bin/sh
rm -f *.tmp
