content of bin/run.sig
content of bin/run.sig
