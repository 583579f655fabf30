import '../../test/support/server/turn-probe.ts';
import { main } from '../../src/main.ts';

// `annals recorder` with a probe, to be forked.
await main(['recorder'], process.env);
