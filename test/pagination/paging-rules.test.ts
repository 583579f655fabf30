import { describe } from 'vitest';
import { testPagingRules } from '../support/oracle/paging-rules.ts';
import { aiListings, instancesOfThing } from '../support/server/listings.ts';

describe.each([instancesOfThing, ...aiListings])('$name', (listed) => testPagingRules(listed));
