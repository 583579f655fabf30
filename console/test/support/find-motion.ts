import type { Page } from 'playwright-core';

/** The elements of a page that move, or would with their next change: those with an animation or a transition longer than 0. */
export async function findMotion(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const lasts = (durations: string) => durations.split(',').some((duration) => Number.parseFloat(duration) > 0);
    const moves = (element: Element, part?: string) => {
      const { animationName, animationDuration, transitionDuration } = getComputedStyle(element, part);
      return (animationName !== 'none' && lasts(animationDuration)) || lasts(transitionDuration);
    };
    return [...document.querySelectorAll('*')]
      .filter((element) => [undefined, '::before', '::after'].some((part) => moves(element, part)))
      .map(({ outerHTML }) => outerHTML.slice(0, 120));
  });
}

/** The animations of a page's styles that a reader who wants no motion would get, whether something has them now or not. */
export async function findUnaskedAnimations(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const animated = (rules: CSSRuleList): string[] =>
      [...rules].flatMap((rule) => {
        if (rule instanceof CSSMediaRule) return matchMedia(rule.conditionText).matches ? animated(rule.cssRules) : [];
        return rule instanceof CSSStyleRule && !['', 'none'].includes(rule.style.animationName) ? [rule.cssText] : [];
      });
    return [...document.styleSheets].flatMap(({ cssRules }) => animated(cssRules));
  });
}
