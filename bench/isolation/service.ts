import '../../test/support/server/turn-probe.ts';
import { main } from '../../src/main.ts';

// The service as `annals serve` runs it, with a probe, to be forked.
await main(['serve'], process.env);
