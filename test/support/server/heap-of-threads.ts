import { setFlagsFromString } from 'node:v8';

// A thread reads these flags when it starts, and they would override its resource limits.
for (const flag of ['min-semi-space-size', 'max-semi-space-size', 'initial-heap-size'])
  setFlagsFromString(`--${flag}=0`);
