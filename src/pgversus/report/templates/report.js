// Draws each chart when it scrolls into view, or all of them before printing; filters the table of verdicts.
(function () {
  "use strict";

  // The promise of each chart, set when drawing begins.
  var drawings = new Map();

  function draw(figure) {
    if (!drawings.has(figure)) {
      figure.dataset.state = "drawing";
      drawings.set(figure, begin(figure).then(function () {
        figure.dataset.state = "drawn";
      }, function (error) {
        var message = figure.querySelector(".failure");
        figure.dataset.state = "failed";
        message.textContent = String(error);
        message.hidden = false;
        console.error(error);
      }));
    }
    return drawings.get(figure);
  }

  async function begin(figure) {
    var specification = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
    var config = JSON.parse(document.getElementById("chart-config").textContent);
    var options = { config: config, ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: false };
    await window.vegaEmbed(figure.querySelector(".drawing"), specification, options);
  }

  var figures = Array.prototype.slice.call(document.querySelectorAll("figure[data-chart]"));
  function drawAll() {
    return Promise.all(figures.map(draw));
  }
  // The browser does not wait for this before printing; the page's own button does.
  window.addEventListener("beforeprint", drawAll);
  var button = document.getElementById("print");
  button.hidden = false;
  button.addEventListener("click", function () {
    drawAll().then(function () {
      window.print();
    });
  });

  var observer = new IntersectionObserver(
    function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting) {
          observer.unobserve(entry.target);
          draw(entry.target);
        }
      });
    },
    { rootMargin: "400px" }
  );
  figures.forEach(function (figure) {
    observer.observe(figure);
  });

  // Charts that are not in view are drawn when the browser is idle, one at a time.
  var waiting = figures.slice();
  function drawNext() {
    var figure = waiting.shift();
    if (figure) {
      draw(figure).then(later);
    } else {
      document.documentElement.dataset.drawn = "all";
    }
  }
  function later() {
    if (window.requestIdleCallback) {
      window.requestIdleCallback(drawNext, { timeout: 2000 });
    } else {
      window.setTimeout(drawNext, 50);
    }
  }
  window.addEventListener("load", later);

  var box = document.getElementById("filter");
  if (box) {
    var rows = Array.prototype.slice.call(document.querySelectorAll("#verdicts > .wide tbody tr"));
    var count = document.getElementById("filtered");
    box.parentElement.hidden = false;
    box.addEventListener("input", function () {
      var words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      var shown = 0;
      rows.forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = !words.every(function (word) {
          return text.indexOf(word) >= 0;
        });
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = shown + " / " + rows.length;
    });
  }

  // Unfold everything for printing in browsers that do not know ::details-content of the style sheet.
  var opened = [];
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details:not([open])").forEach(function (one) {
      one.open = true;
      opened.push(one);
    });
  });
  window.addEventListener("afterprint", function () {
    opened.splice(0).forEach(function (one) {
      one.open = false;
    });
  });
})();
