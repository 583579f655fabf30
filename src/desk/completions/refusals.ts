import { AnnalsError } from '../../core/errors.ts';
import type { BudgetRefusal } from './quota-store.ts';

const retryAfter = '5';

export function quotaExceeded(): AnnalsError {
  return new AnnalsError(
    'quota_exceeded',
    'The quota of the shared provider token is used up. Set providerApiToken to use your own token.',
  );
}

export function refusedByBudget({ outcome, budget, bound, rest: left }: BudgetRefusal): AnnalsError {
  switch (outcome) {
    case 'over':
      return new AnnalsError(
        'quota_exceeded',
        `The call may need ${bound} of the budget ${budget}, which has ${left} left. It needs less with fewer output tokens.`,
        {
          details: [
            { field: 'budget', message: budget },
            { field: 'bound', message: bound ?? '' },
            { field: 'rest', message: left ?? '' },
          ],
        },
      );
    case 'unpriced':
      return new AnnalsError('price_unknown', `The model has no price, and the budget ${budget} limits costs.`);
    case 'unbounded':
      return new AnnalsError(
        'validation_violation',
        `The images, files or typed tools have no known number of tokens, and the budget ${budget} applies to the call.`,
      );
  }
}

/** The call would fit once others have settled. */
export class QuotaReserved extends AnnalsError {
  /** `budget`: undefined for the quota. */
  constructor(budget: string | undefined) {
    const what = budget === undefined ? 'quota of the shared provider token' : `budget ${budget}`;
    super('service_unavailable', `Calls in progress have reserved the rest of the ${what}.`, {
      headers: { 'Retry-After': retryAfter },
    });
  }
}
