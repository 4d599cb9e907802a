# A copy: what the bandwidth of everything else is compared with.

copy(x[n]) = i~i
