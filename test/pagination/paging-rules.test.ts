import { describe } from 'vitest';
import { aiListings, instancesOfThing } from '../support/listings.ts';
import { testPagingRules } from '../support/paging-rules.ts';

describe.each([instancesOfThing, ...aiListings])('$name', (listed) => testPagingRules(listed));
