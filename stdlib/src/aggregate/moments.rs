//! Deviation, variance, skewness, kurtosis, covariance, correlation and regression.
//!
//! The states are means and sums of products of differences from the mean, updated and merged one value at a time by the
//! formulas that Spark uses, so that the results are Spark's to the last digit where the rows come in the same order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::Float64Type;

use super::{Aggregate, SKIP, SlotType, StateRows};
use crate::error::EvalError;
use crate::function::{FunctionDef, NullRule, Param, Ret, aggregate};

const ONE: &[Param] = &[Param::Double];
const TWO: &[Param] = &[Param::Double, Param::Double];

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate("stddev", ONE, Ret::Double, |_| moments(2, |m| m.sample(|v| v.sqrt())))
        .aliases(&["stddev_samp", "std"])
        .doc("Standard deviation of a sample.", "stddev(expr)", ""),
    aggregate("stddev_pop", ONE, Ret::Double, |_| moments(2, |m| Some((m.m2 / m.n).sqrt()))).doc(
        "Standard deviation of a population.",
        "stddev_pop(expr)",
        "",
    ),
    aggregate("variance", ONE, Ret::Double, |_| moments(2, |m| m.sample(|v| v))).aliases(&["var_samp"]).doc(
        "Variance of a sample.",
        "variance(expr)",
        "",
    ),
    aggregate("var_pop", ONE, Ret::Double, |_| moments(2, |m| Some(m.m2 / m.n))).doc(
        "Variance of a population.",
        "var_pop(expr)",
        "",
    ),
    aggregate("skewness", ONE, Ret::Double, |_| {
        moments(3, |m| (m.m2 != 0.0).then(|| m.n.sqrt() * m.m3 / (m.m2 * m.m2 * m.m2).sqrt()))
    })
    .doc("Skewness of the values; NULL where all are equal.", "skewness(expr)", ""),
    aggregate("kurtosis", ONE, Ret::Double, |_| {
        moments(4, |m| (m.m2 != 0.0).then(|| m.n * m.m4 / (m.m2 * m.m2) - 3.0))
    })
    .doc("Excess kurtosis of the values; NULL where all are equal.", "kurtosis(expr)", ""),
    aggregate("covar_pop", TWO, Ret::Double, |_| pairs(|p| Some(p.xy / p.n))).doc(
        "Covariance of a population.",
        "covar_pop(x, y)",
        "",
    ),
    aggregate("covar_samp", TWO, Ret::Double, |_| pairs(|p| (p.n > 1.0).then(|| p.xy / (p.n - 1.0)))).doc(
        "Covariance of a sample.",
        "covar_samp(x, y)",
        "",
    ),
    aggregate("corr", TWO, Ret::Double, |_| {
        pairs(|p| {
            let spread = (p.xx * p.yy).sqrt();
            (p.n > 1.0 && spread != 0.0).then(|| p.xy / spread)
        })
    })
    .doc("Pearson's correlation; NULL where a side has one value only.", "corr(x, y)", ""),
    aggregate("regr_count", TWO, Ret::BigInt, |_| Ok(Arc::new(PairCount))).nulls(NullRule::Never).doc(
        "Number of rows where both values are not NULL.",
        "regr_count(y, x)",
        "",
    ),
    // The dependent variable y comes first: it is the `x` of the state.
    aggregate("regr_avgx", TWO, Ret::Double, |_| Ok(Arc::new(PairMean { of: 1 }))).doc(
        "Mean of the independent variable.",
        "regr_avgx(y, x)",
        "",
    ),
    aggregate("regr_avgy", TWO, Ret::Double, |_| Ok(Arc::new(PairMean { of: 0 }))).doc(
        "Mean of the dependent variable.",
        "regr_avgy(y, x)",
        "",
    ),
    aggregate("regr_sxx", TWO, Ret::Double, |_| pairs(|p| Some(p.yy))).doc(
        "Sum of squared differences of the independent variable from its mean.",
        "regr_sxx(y, x)",
        "",
    ),
    aggregate("regr_syy", TWO, Ret::Double, |_| pairs(|p| Some(p.xx))).doc(
        "Sum of squared differences of the dependent variable from its mean.",
        "regr_syy(y, x)",
        "",
    ),
    aggregate("regr_sxy", TWO, Ret::Double, |_| pairs(|p| Some(p.xy))).doc(
        "Sum of the products of both variables' differences from their means.",
        "regr_sxy(y, x)",
        "",
    ),
    aggregate("regr_slope", TWO, Ret::Double, |_| pairs(|p| (p.yy != 0.0).then(|| p.xy / p.yy))).doc(
        "Slope of the regression line; NULL where the independent variable has one value only.",
        "regr_slope(y, x)",
        "",
    ),
    aggregate("regr_intercept", TWO, Ret::Double, |_| pairs(|p| (p.yy != 0.0).then(|| p.x - p.xy / p.yy * p.y))).doc(
        "Intercept of the regression line; NULL where the independent variable has one value only.",
        "regr_intercept(y, x)",
        "",
    ),
    aggregate("regr_r2", TWO, Ret::Double, |_| {
        pairs(|p| match (p.yy == 0.0, p.xx == 0.0) {
            (true, _) => None,
            (false, true) => Some(1.0),
            _ => Some(p.xy * p.xy / (p.xx * p.yy)),
        })
    })
    .doc("Coefficient of determination of the regression.", "regr_r2(y, x)", ""),
];

/// Count, mean and central moments of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    n: f64,
    mean: f64,
    m2: f64,
    m3: f64,
    m4: f64,
}

impl Moments {
    fn push(&mut self, x: f64) {
        self.n += 1.0;
        let delta = x - self.mean;
        let delta_n = delta / self.n;
        self.mean += delta_n;
        let (delta2, delta_n2) = (delta * delta, delta_n * delta_n);
        self.m2 += delta * (delta - delta_n);
        self.m3 = self.m3 - 3.0 * delta_n * self.m2 + delta * (delta2 - delta_n2);
        self.m4 = self.m4 - 4.0 * delta_n * self.m3 - 6.0 * delta_n2 * self.m2
            + delta * (delta * delta2 - delta_n * delta_n2);
    }

    fn merge(&mut self, o: Moments) {
        if o.n == 0.0 {
            return;
        }
        let (a, n1, n2) = (*self, self.n, o.n);
        self.n += n2;
        let delta = o.mean - a.mean;
        let d = delta / self.n;
        self.mean += d * n2;
        self.m2 = a.m2 + o.m2 + delta * d * n1 * n2;
        self.m3 = a.m3 + o.m3 + d * d * delta * n1 * n2 * (n1 - n2) + 3.0 * d * (n1 * o.m2 - n2 * a.m2);
        self.m4 = a.m4
            + o.m4
            + d * d * d * delta * n1 * n2 * (n1 * n1 - n1 * n2 + n2 * n2)
            + 6.0 * d * d * (n1 * n1 * o.m2 + n2 * n2 * a.m2)
            + 4.0 * d * (n1 * o.m3 - n2 * a.m3);
    }

    /// The variance of a sample through `f`; one value has none.
    fn sample(&self, f: fn(f64) -> f64) -> Option<f64> {
        (self.n > 1.0).then(|| f(self.m2 / (self.n - 1.0)))
    }
}

/// The result of a group that has values.
type Result64<S> = fn(&S) -> Option<f64>;

/// State `[n, mean, m2, ...]` up to the moment that is needed.
#[derive(Debug)]
struct CentralMoments {
    slots: Vec<SlotType>,
    result: Result64<Moments>,
}

fn moments(order: usize, result: Result64<Moments>) -> Result<Arc<dyn Aggregate>, EvalError> {
    Ok(Arc::new(CentralMoments { slots: vec![SlotType::F64; order + 1], result }))
}

impl CentralMoments {
    fn load(&self, rows: &StateRows<'_>, g: u32) -> Moments {
        let word = |i: usize| if i < self.slots.len() { rows.f64(g, i) } else { 0.0 };
        Moments { n: word(0), mean: word(1), m2: word(2), m3: word(3), m4: word(4) }
    }

    fn store(&self, rows: &mut StateRows<'_>, g: u32, m: Moments) {
        for (i, v) in [m.n, m.mean, m.m2, m.m3, m.m4].into_iter().enumerate().take(self.slots.len()) {
            rows.set_f64(g, i, v);
        }
    }
}

impl Aggregate for CentralMoments {
    fn slots(&self) -> &[SlotType] {
        &self.slots
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let array = args[0].as_primitive::<Float64Type>();
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && array.is_valid(row) {
                let mut m = self.load(rows, *g);
                m.push(array.value(row));
                self.store(rows, *g, m);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let mut m = self.load(dst, *d);
            m.merge(self.load(src, *s));
            self.store(dst, *d, m);
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        Ok(Arc::new(Float64Array::from_iter(groups.iter().map(|g| {
            let m = self.load(rows, *g);
            if m.n > 0.0 { (self.result)(&m) } else { None }
        }))))
    }
}

/// Count, means and sums of products of differences of pairs.
#[derive(Debug, Clone, Copy)]
struct Pair {
    n: f64,
    x: f64,
    y: f64,
    xy: f64,
    xx: f64,
    yy: f64,
}

impl Pair {
    fn load(rows: &StateRows<'_>, g: u32) -> Pair {
        let w = |i| rows.f64(g, i);
        Pair { n: w(0), x: w(1), y: w(2), xy: w(3), xx: w(4), yy: w(5) }
    }

    fn store(self, rows: &mut StateRows<'_>, g: u32) {
        for (i, v) in [self.n, self.x, self.y, self.xy, self.xx, self.yy].into_iter().enumerate() {
            rows.set_f64(g, i, v);
        }
    }

    fn push(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        let (dx, dy) = (x - self.x, y - self.y);
        self.x += dx / self.n;
        self.y += dy / self.n;
        self.xy += dx * (y - self.y);
        self.xx += dx * (x - self.x);
        self.yy += dy * (y - self.y);
    }

    fn merge(&mut self, o: Pair) {
        if o.n == 0.0 {
            return;
        }
        let (n1, n2) = (self.n, o.n);
        self.n += n2;
        let (dx, dy) = (o.x - self.x, o.y - self.y);
        let (dx_n, dy_n) = (dx / self.n, dy / self.n);
        self.x += dx_n * n2;
        self.y += dy_n * n2;
        self.xy += o.xy + dx * dy_n * n1 * n2;
        self.xx += o.xx + dx * dx_n * n1 * n2;
        self.yy += o.yy + dy * dy_n * n1 * n2;
    }
}

/// State `[n, mean x, mean y, xy, xx, yy]`; pairs with a NULL do not count.
#[derive(Debug)]
struct Pairs {
    result: Result64<Pair>,
}

fn pairs(result: Result64<Pair>) -> Result<Arc<dyn Aggregate>, EvalError> {
    Ok(Arc::new(Pairs { result }))
}

impl Aggregate for Pairs {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::F64; 6]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let (x, y) = (args[0].as_primitive::<Float64Type>(), args[1].as_primitive::<Float64Type>());
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && x.is_valid(row) && y.is_valid(row) {
                let mut p = Pair::load(rows, *g);
                p.push(x.value(row), y.value(row));
                p.store(rows, *g);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let mut p = Pair::load(dst, *d);
            p.merge(Pair::load(src, *s));
            p.store(dst, *d);
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        Ok(Arc::new(Float64Array::from_iter(groups.iter().map(|g| {
            let p = Pair::load(rows, *g);
            if p.n > 0.0 { (self.result)(&p) } else { None }
        }))))
    }
}

/// `regr_avgx`, `regr_avgy`: the plain mean of one side, as Spark's `avg` has it. State `[sum, n]`.
#[derive(Debug)]
struct PairMean {
    /// Which argument is averaged.
    of: usize,
}

impl Aggregate for PairMean {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::F64; 2]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let (x, y) = (args[0].as_primitive::<Float64Type>(), args[1].as_primitive::<Float64Type>());
        let values = if self.of == 0 { x } else { y };
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && x.is_valid(row) && y.is_valid(row) {
                rows.set_f64(*g, 0, rows.f64(*g, 0) + values.value(row));
                rows.set_f64(*g, 1, rows.f64(*g, 1) + 1.0);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            for word in 0..2 {
                dst.set_f64(*d, word, dst.f64(*d, word) + src.f64(*s, word));
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        Ok(Arc::new(Float64Array::from_iter(groups.iter().map(|g| {
            let n = rows.f64(*g, 1);
            (n > 0.0).then(|| rows.f64(*g, 0) / n)
        }))))
    }
}

/// `regr_count`: `[n i64]`.
#[derive(Debug)]
struct PairCount;

impl Aggregate for PairCount {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::I64]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && args[0].is_valid(row) && args[1].is_valid(row) {
                let n = rows.i64(*g, 0);
                rows.set_i64(*g, 0, n + 1);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let n = dst.i64(*d, 0) + src.i64(*s, 0);
            dst.set_i64(*d, 0, n);
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        Ok(Arc::new(Int64Array::from_iter_values(groups.iter().map(|g| rows.i64(*g, 0)))))
    }
}

#[cfg(test)]
mod tests {
    use ssql_ir::DataType as T;

    use super::*;
    use crate::testing::{agg_call, check_aggregate};

    fn column(values: &[Option<f64>]) -> ArrayRef {
        Arc::new(Float64Array::from(values.to_vec()))
    }

    #[test]
    fn moments_of_one_column() {
        // Values whose sums are exact, so that any split gives the same digits.
        let x = column(&[Some(2.0), Some(4.0), None, Some(4.0), Some(6.0)]);
        let run =
            |name: &str, x: &ArrayRef| check_aggregate(&agg_call(name, &[T::Float64], false), std::slice::from_ref(x));
        assert_eq!(run("var_pop", &x), "2.0");
        assert_eq!(run("variance", &x.slice(0, 2)), "2.0");
        assert_eq!(run("std", &x.slice(0, 2)), "1.4142135623730951");
        assert_eq!(run("stddev_pop", &x), "1.4142135623730951");
        let one = x.slice(0, 1);
        assert_eq!(run("stddev", &one), "NULL");
        assert_eq!(run("var_samp", &one), "NULL");
        assert_eq!(run("stddev_pop", &one), "0.0");
        assert_eq!(run("skewness", &one), "NULL");
        assert_eq!(run("kurtosis", &x.slice(2, 1)), "NULL");
        assert_eq!(run("stddev_pop", &column(&[Some(1.0), Some(f64::NAN), Some(3.0)])), "NaN");
        assert_eq!(run("var_samp", &column(&[Some(f64::INFINITY), Some(2.0)])), "NaN");
    }

    #[test]
    fn digits_are_those_of_spark() {
        let mut m = Moments::default();
        [1.0, 2.0, 4.0, 9.0].into_iter().for_each(|x| m.push(x));
        assert_eq!(m.n.sqrt() * m.m3 / (m.m2 * m.m2 * m.m2).sqrt(), 0.768_417_257_987_822_6);
        assert_eq!(m.n * m.m4 / (m.m2 * m.m2) - 3.0, -1.0);
        assert_eq!(m.sample(|v| v.sqrt()), Some(3.559_026_084_010_436_6));
    }

    #[test]
    fn pairs_of_columns() {
        let y = column(&[Some(1.0), Some(3.0), Some(5.0), Some(7.0), Some(1.0)]);
        let x = column(&[Some(2.0), Some(4.0), Some(4.0), Some(6.0), None]);
        let run = |name: &str, a: &ArrayRef, b: &ArrayRef| {
            check_aggregate(&agg_call(name, &[T::Float64, T::Float64], false), &[a.clone(), b.clone()])
        };
        assert_eq!(run("covar_pop", &x, &y), "3.0");
        assert_eq!(run("covar_samp", &x, &y), "4.0");
        assert_eq!(run("regr_count", &y, &x), "4");
        assert_eq!(run("regr_avgx", &y, &x), "4.0");
        assert_eq!(run("regr_sxx", &y, &x), "8.0");
        assert_eq!(run("regr_slope", &y, &x), "1.5");
        assert_eq!(run("regr_intercept", &y, &x), "-2.0");
        assert_eq!(run("regr_r2", &y, &x), "0.9");
        assert_eq!(run("corr", &x, &y), "0.9486832980505138");
        let same = column(&[Some(1.0); 5]);
        assert_eq!(run("corr", &same, &y), "NULL");
        assert_eq!(run("regr_slope", &y, &same), "NULL");
        assert_eq!(run("regr_r2", &same, &y), "1.0");
        assert_eq!(run("covar_samp", &x.slice(0, 1), &y.slice(0, 1)), "NULL");
        assert_eq!(run("regr_count", &y.slice(0, 0), &x.slice(0, 0)), "0");
    }
}
